//! The tables, and every statement that is run on them.

use std::time::Duration;

use tokio_postgres::{Client, Config, Statement};

use super::fault;
use super::sessions::connect;
use crate::engine::Fault;

const FORMAT: i32 = 1;

/// Serializes the creation of tables by processes that start at the same time.
const CREATION_LOCK: i64 = 0x484F_4C44_4641_5354;

/// An index entry of PostgreSQL holds at most 2,704 bytes and a key may be longer, so rows are
/// unique by the first 2,000 bytes of their key and a digest of those that are longer, and ordered
/// by those bytes and then by the whole key.
///
/// Nothing that an update changes is indexed, which lets PostgreSQL update a row in place. That is
/// also why deletions are listed in a table of their own and not found by an index.
///
/// Values are stored as they are: most are small records, the larger ones are contents of blobs
/// that would be compressed in vain.
const CREATE: &str = "
    CREATE TABLE holdfast_store (
        single boolean PRIMARY KEY DEFAULT true CHECK (single),
        format integer NOT NULL,
        cluster bigint NOT NULL,
        horizon xid8 NOT NULL
    );
    CREATE TABLE holdfast_rows (
        key bytea NOT NULL,
        value bytea,
        transaction xid8 NOT NULL
    );
    ALTER TABLE holdfast_rows ALTER COLUMN value SET STORAGE EXTERNAL;
    CREATE UNIQUE INDEX holdfast_rows_key ON holdfast_rows (
        substring(key, 1, 2000),
        (CASE WHEN length(key) <= 2000 THEN ''::bytea ELSE sha256(key) END)
    );
    CREATE TABLE holdfast_deletions (
        transaction xid8 NOT NULL,
        key bytea NOT NULL
    );
    CREATE INDEX holdfast_deletions_transaction ON holdfast_deletions (transaction)";

const DESCRIBE_NEW: &str = "
    INSERT INTO holdfast_store (format, cluster, horizon)
    SELECT $1, system_identifier, '0'::xid8 FROM pg_control_system()";

const EXISTS: &str = "SELECT to_regclass('holdfast_store') IS NOT NULL";

const DESCRIBE: &str = "
    SELECT format, cluster = system_identifier FROM holdfast_store, pg_control_system()";

/// Every statement here is a walk along an index; a planner that reads the whole table because it
/// is still small would, in a serializable transaction, conflict with every writer. Compiling such
/// statements costs a hundred times what running them does.
pub const PREPARE_SESSION: &str = "
    SET enable_seqscan = off;
    SET enable_bitmapscan = off;
    SET enable_sort = off;
    SET enable_hashjoin = off;
    SET enable_mergejoin = off;
    SET jit = off;
    SET default_transaction_isolation = 'read committed';
    SET client_connection_check_interval = '5s'";

pub const BEGIN_SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
pub const BEGIN_COMMIT: &str = "BEGIN ISOLATION LEVEL SERIALIZABLE";

const MOMENT: &str = "SELECT pg_current_snapshot()::text";

const GET: &str = "
    SELECT value FROM holdfast_rows
    WHERE substring(key, 1, 2000) = substring($1::bytea, 1, 2000) AND key = $1
        AND value IS NOT NULL";

const SCAN_ASCENDING: &str = "
    SELECT key, value FROM holdfast_rows
    WHERE substring(key, 1, 2000) >= substring($1::bytea, 1, 2000) AND key >= $1
        AND substring(key, 1, 2000) <= substring($2::bytea, 1, 2000) AND key < $2
        AND value IS NOT NULL
    ORDER BY substring(key, 1, 2000), key
    LIMIT $3";

const SCAN_DESCENDING: &str = "
    SELECT key, value FROM holdfast_rows
    WHERE substring(key, 1, 2000) >= substring($1::bytea, 1, 2000) AND key >= $1
        AND substring(key, 1, 2000) <= substring($2::bytea, 1, 2000) AND key < $2
        AND value IS NOT NULL
    ORDER BY substring(key, 1, 2000) DESC, key DESC
    LIMIT $3";

/// Checks and writes in one statement, and answers whether everything expected was unchanged. It is
/// sent together with its `BEGIN`; should that have failed, the isolation level tells, and nothing
/// is written.
///
/// $1 keys and $2 values to write (no value: a deletion); $3 the moment, if any; $4 the rows and
/// $5, $6 the starts and ends of the ranges that must not have been written since.
const COMMIT_BATCH: &str = "
    WITH verdict AS MATERIALIZED (
        SELECT current_setting('transaction_isolation') = 'serializable' AND ($3::text IS NULL OR (
            pg_snapshot_xmin($3::text::pg_snapshot) >= (SELECT horizon FROM holdfast_store WHERE single)
            AND NOT EXISTS (
                SELECT FROM unnest($4::bytea[]) AS expected (key) JOIN holdfast_rows AS found
                    ON substring(found.key, 1, 2000) = substring(expected.key, 1, 2000)
                    AND found.key = expected.key
                WHERE NOT pg_visible_in_snapshot(
                    found.transaction, (SELECT $3::text::pg_snapshot)))
            AND NOT EXISTS (
                SELECT FROM unnest($5::bytea[], $6::bytea[]) AS expected (first, past)
                JOIN holdfast_rows AS found
                    ON substring(found.key, 1, 2000) >= substring(expected.first, 1, 2000)
                    AND found.key >= expected.first
                    AND substring(found.key, 1, 2000) <= substring(expected.past, 1, 2000)
                    AND found.key < expected.past
                WHERE NOT pg_visible_in_snapshot(
                    found.transaction, (SELECT $3::text::pg_snapshot)))
        )) AS unchanged
    ),
    written AS (
        INSERT INTO holdfast_rows (key, value, transaction)
        SELECT key, value, pg_current_xact_id()
        FROM unnest($1::bytea[], $2::bytea[]) AS wanted (key, value), verdict
        WHERE unchanged
        ON CONFLICT (
            substring(key, 1, 2000),
            (CASE WHEN length(key) <= 2000 THEN ''::bytea ELSE sha256(key) END)
        ) DO UPDATE SET value = excluded.value, transaction = excluded.transaction
    ),
    listed AS (
        INSERT INTO holdfast_deletions (transaction, key)
        SELECT pg_current_xact_id(), key
        FROM unnest($1::bytea[], $2::bytea[]) AS wanted (key, value), verdict
        WHERE unchanged AND value IS NULL
    )
    SELECT unchanged FROM verdict";

pub const RAISE_HORIZON: &str = "
    UPDATE holdfast_store
    SET horizon = greatest(horizon, pg_snapshot_xmin($1::text::pg_snapshot))
    WHERE single";

/// A row deleted and then written again names another transaction, and stays.
pub const SWEEP: &str = "
    WITH swept AS (
        DELETE FROM holdfast_deletions WHERE ctid = ANY (ARRAY (
            SELECT ctid FROM holdfast_deletions
            WHERE transaction < (SELECT horizon FROM holdfast_store WHERE single)
            ORDER BY transaction LIMIT $1::bigint FOR UPDATE SKIP LOCKED))
        RETURNING key, transaction
    ),
    removed AS (
        DELETE FROM holdfast_rows AS found USING swept
        WHERE substring(found.key, 1, 2000) = substring(swept.key, 1, 2000)
            AND found.key = swept.key
            AND found.value IS NULL AND found.transaction = swept.transaction
    )
    SELECT count(*) FROM swept";

pub const ESTIMATE_ROWS: &str = "
    SELECT greatest(reltuples, 0)::bigint FROM pg_class WHERE oid = 'holdfast_rows'::regclass";

/// The statements of one session, prepared.
pub struct Statements {
    pub moment: Statement,
    pub get: Statement,
    pub scan_ascending: Statement,
    pub scan_descending: Statement,
    pub commit_batch: Statement,
}

impl Statements {
    pub async fn prepare(client: &Client) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            moment: client.prepare(MOMENT).await?,
            get: client.prepare(GET).await?,
            scan_ascending: client.prepare(SCAN_ASCENDING).await?,
            scan_descending: client.prepare(SCAN_DESCENDING).await?,
            commit_batch: client.prepare(COMMIT_BATCH).await?,
        })
    }
}

/// Creates the tables if they are not there, and refuses, untouched, what another format or another
/// cluster has written.
pub async fn create(configuration: &Config, wait_max: Duration) -> Result<(), Fault> {
    let what = "the tables of the store could not be created";
    let described = tokio::time::timeout(wait_max, create_and_describe(configuration))
        .await
        .map_err(|elapsed| Fault::because(what, elapsed))?
        .map_err(|error| fault(what, error))?;
    let format: i32 = described.get(0);
    if format != FORMAT {
        return Err(Fault::new(format!(
            "the store in this database has format {format}; this version reads format {FORMAT}"
        )));
    }
    if !described.get::<_, bool>(1) {
        return Err(Fault::new(
            "the store was copied here from another PostgreSQL cluster by a dump, and its rows \
             name transactions of that cluster",
        ));
    }
    Ok(())
}

/// Tables that are there are left alone: even `IF NOT EXISTS` takes locks that conflict with the
/// snapshots and commits of other processes.
async fn create_and_describe(
    configuration: &Config,
) -> Result<tokio_postgres::Row, tokio_postgres::Error> {
    let mut client = connect(configuration).await?;
    let creation = client.transaction().await?;
    creation.execute("SELECT pg_advisory_xact_lock($1)", &[&CREATION_LOCK]).await?;
    if !creation.query_one(EXISTS, &[]).await?.get::<_, bool>(0) {
        creation.batch_execute(CREATE).await?;
        creation.execute(DESCRIBE_NEW, &[&FORMAT]).await?;
    }
    creation.commit().await?;
    client.query_one(DESCRIBE, &[]).await
}
