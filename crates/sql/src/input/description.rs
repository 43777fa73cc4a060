//! The metadata of Parquet files and pages, as far as the decoder knows it: the kind of each field. The
//! decoder reads a known field as the expected kind, whatever kind the bytes declare.

use super::thrift::Shape::{self, Binary, Bool, Byte, Double, I16, I32, I64, List, Struct};

pub static FILE: Shape = Struct(&[
    (1, &I32),
    (2, &List(&Struct(SCHEMA_ELEMENT))),
    (3, &I64),
    (4, &List(&Struct(ROW_GROUP))),
    (5, KEYS_AND_VALUES),
    (6, &Binary),
    (7, &List(EMPTY)),
    (8, EMPTY),
    (9, &Binary),
]);

pub static PAGE: Shape = Struct(&[
    (1, &I32),
    (2, &I32),
    (3, &I32),
    (4, &I32),
    (5, &Struct(&[(1, &I32), (2, &I32), (3, &I32), (4, &I32), (5, &Struct(STATISTICS))])),
    (6, EMPTY),
    (7, &Struct(&[(1, &I32), (2, &I32), (3, &Bool)])),
    (8, &Struct(PAGE_OF_VERSION_2)),
]);

/// In [`PAGE`]: its uncompressed length, and the number of values in its dictionary.
pub const PAGE_BYTES: &[i16] = &[2];
pub const DICTIONARY_VALUES: &[i16] = &[7, 1];

type Fields = &'static [(i16, &'static Shape)];

/// A struct of which the decoder knows no field.
const EMPTY: &Shape = &Struct(&[]);
const KEYS_AND_VALUES: &Shape = &List(&Struct(&[(1, &Binary), (2, &Binary)]));

const PAGE_OF_VERSION_2: Fields = &[
    (1, &I32),
    (2, &I32),
    (3, &I32),
    (4, &I32),
    (5, &I32),
    (6, &I32),
    (7, &Bool),
    (8, &Struct(STATISTICS)),
];

const SCHEMA_ELEMENT: Fields = &[
    (1, &I32),
    (2, &I32),
    (3, &I32),
    (4, &Binary),
    (5, &I32),
    (6, &I32),
    (7, &I32),
    (8, &I32),
    (9, &I32),
    (10, &Struct(LOGICAL_TYPE)),
];

const LOGICAL_TYPE: Fields = &[
    (1, EMPTY),
    (2, EMPTY),
    (3, EMPTY),
    (4, EMPTY),
    (5, &Struct(&[(1, &I32), (2, &I32)])),
    (6, EMPTY),
    (7, &Struct(TIME)),
    (8, &Struct(TIME)),
    (10, &Struct(&[(1, &Byte), (2, &Bool)])),
    (11, EMPTY),
    (12, EMPTY),
    (13, EMPTY),
    (14, EMPTY),
    (15, EMPTY),
    (16, &Struct(&[(1, &Byte)])),
    (17, &Struct(&[(1, &Binary)])),
    (18, &Struct(&[(1, &Binary), (2, &I32)])),
];

const TIME: Fields = &[(1, &Bool), (2, &Struct(&[(1, EMPTY), (2, EMPTY), (3, EMPTY)]))];

const ROW_GROUP: Fields = &[
    (1, &List(&Struct(COLUMN))),
    (2, &I64),
    (3, &I64),
    (4, &List(&Struct(&[(1, &I32), (2, &Bool), (3, &Bool)]))),
    (5, &I64),
    (6, &I64),
    (7, &I16),
];

const COLUMN: Fields = &[
    (1, &Binary),
    (2, &I64),
    (3, &Struct(COLUMN_DESCRIPTION)),
    (4, &I64),
    (5, &I32),
    (6, &I64),
    (7, &I32),
    (8, EMPTY),
    (9, &Binary),
];

const COLUMN_DESCRIPTION: Fields = &[
    (1, &I32),
    (2, &List(&I32)),
    (3, &List(&Binary)),
    (4, &I32),
    (5, &I64),
    (6, &I64),
    (7, &I64),
    (8, KEYS_AND_VALUES),
    (9, &I64),
    (10, &I64),
    (11, &I64),
    (12, &Struct(STATISTICS)),
    (13, &List(&Struct(&[(1, &I32), (2, &I32), (3, &I32)]))),
    (14, &I64),
    (15, &I32),
    (16, &Struct(&[(1, &I64), (2, &List(&I64)), (3, &List(&I64))])),
    (17, &Struct(&[(1, &Struct(BOX)), (2, &List(&I32))])),
];

const BOX: Fields = &[
    (1, &Double),
    (2, &Double),
    (3, &Double),
    (4, &Double),
    (5, &Double),
    (6, &Double),
    (7, &Double),
    (8, &Double),
];

const STATISTICS: Fields = &[
    (1, &Binary),
    (2, &Binary),
    (3, &I64),
    (4, &I64),
    (5, &Binary),
    (6, &Binary),
    (7, &Bool),
    (8, &Bool),
    (9, &I64),
];
