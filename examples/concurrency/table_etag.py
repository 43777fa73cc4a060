"""Entities: replace under the ETag that was read, or with `*`, which is last writer wins.

An entity always needs one or the other: a stale ETag is refused with 412, `*` overwrites whatever is
there. A batch is one decision: if one of its changes is refused, none of them is made.
"""

from azure.core import MatchConditions
from azure.data.tables import TableServiceClient, TableTransactionError, UpdateMode

from account import CONNECTION, attempt, unique

with TableServiceClient.from_connection_string(CONNECTION) as service:
    table = service.create_table(unique("Etags"))
    key = {"PartitionKey": "shop", "RowKey": "apples"}
    table.create_entity({**key, "Count": 10})

    def read():
        return table.get_entity(**{"partition_key": "shop", "row_key": "apples"})

    def replace(count, etag):
        table.update_entity(
            {**key, "Count": count},
            mode=UpdateMode.REPLACE,
            etag=etag,
            match_condition=MatchConditions.IfNotModified,
        )

    stale = read().metadata["etag"]
    attempt("the first sells one", lambda: replace(9, stale))
    attempt("the second sells one, with a stale ETag", lambda: replace(9, stale))
    attempt("the second reads again", lambda: replace(read()["Count"] - 1, read().metadata["etag"]))
    print(f"there are {read()['Count']}")
    attempt("the third does not look and writes", lambda: table.update_entity({**key, "Count": 50}))
    print(f"there are {read()['Count']}")

    fresh = {"PartitionKey": "shop", "RowKey": "pears", "Count": 1}
    conditions = {"etag": stale, "match_condition": MatchConditions.IfNotModified}
    try:
        table.submit_transaction(
            [("create", fresh), ("update", {**key, "Count": 0}, {"mode": "replace", **conditions})]
        )
    except TableTransactionError as error:
        print(f"a batch with one stale ETag: {error.status_code} {error.error_code}")
    rows = [entity["RowKey"] for entity in table.query_entities("PartitionKey eq 'shop'")]
    print(f"in the shop: {', '.join(rows)}")
    service.delete_table(table.table_name)
