"""List Blobs: order, prefix, delimiter, pages and markers, and what each item tells."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from azure.storage.blob import BlobPrefix, ContentSettings
from support import ETAG, md5, unique

TREE = ["a", "a/1", "a/2", "a/b/1", "a/b/2", "a0", "b", "b/1", "c/x/y/z", "z"]


@pytest.fixture
def tree(container):
    for name in TREE:
        container.upload_blob(name, name.encode())
    return container


@pytest.fixture(scope="module")
def many(service):
    """3000 blobs, for pages."""
    client = service.create_container(unique("many"))
    names = [f"{index // 100:02d}/{index % 100:02d}" for index in range(3000)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: client.upload_blob(name, b"x"), names))
    yield client, names
    client.delete_container()


def names(items):
    return [item.name for item in items]


def pages(listing):
    found, iterator = [], listing.by_page()
    for page in iterator:
        found.append(names(page))
    return found


def test_empty_container_lists_nothing(container):
    assert list(container.list_blobs()) == []
    assert list(container.walk_blobs(delimiter="/")) == []


def test_order_is_ordinal(container):
    unordered = ["b", "B", "a", "A", "~", "!", "0", "é", "z/", "z-", "z0", "日", "🦀", "\uff5e"]
    for name in unordered:
        container.upload_blob(name, b"x")
    listed = names(container.list_blobs())
    assert sorted(listed) == sorted(unordered)
    ascii_names = [name for name in listed if name.isascii()]
    assert ascii_names == sorted(ascii_names)


@pytest.mark.parametrize("prefix", ["", "a", "a/", "a/b", "a/b/", "b", "c/x", "nothing", "z", "zz"])
def test_prefix_is_a_plain_start_of_the_name(tree, prefix):
    assert names(tree.list_blobs(name_starts_with=prefix)) == [name for name in TREE if name.startswith(prefix)]


@pytest.mark.parametrize(
    "prefix, delimiter, expected",
    [
        (None, "/", ["a", "a/", "a0", "b", "b/", "c/", "z"]),
        ("a/", "/", ["a/1", "a/2", "a/b/"]),
        ("a/b/", "/", ["a/b/1", "a/b/2"]),
        ("a", "/", ["a", "a/", "a0"]),
        ("c", "/", ["c/"]),
        (None, "/x/", ["a", "a/1", "a/2", "a/b/1", "a/b/2", "a0", "b", "b/1", "c/x/", "z"]),
        (None, "a", ["a", "b", "b/1", "c/x/y/z", "z"]),
        ("nothing", "/", []),
    ],
)
def test_delimiter_folds_names_into_prefixes(tree, prefix, delimiter, expected):
    items = list(tree.walk_blobs(name_starts_with=prefix, delimiter=delimiter))
    # The SDK puts the prefixes of a page before its blobs, so it does not show the order.
    assert sorted(item.name for item in items) == expected
    folded = {item.name for item in items if isinstance(item, BlobPrefix)}
    assert folded == {name for name in expected if name.endswith(delimiter)}


@pytest.mark.parametrize("size", [1, 2, 3, 4, 100])
def test_pages_with_delimiter_count_prefixes(tree, size):
    found = []
    token = None
    while True:
        iterator = tree.walk_blobs(delimiter="/", results_per_page=size).by_page(token)
        page = list(next(iterator))
        assert len(page) <= size
        # The SDK puts the prefixes of a page before its blobs.
        found += sorted(names(page))
        token = iterator.continuation_token
        if not token:
            break
    assert found == ["a", "a/", "a0", "b", "b/", "c/", "z"]


def test_three_thousand_blobs_by_pages(many):
    client, expected = many
    assert names(client.list_blobs()) == expected
    found = pages(client.list_blobs(results_per_page=700))
    assert [name for page in found for name in page] == expected
    assert all(len(page) <= 700 for page in found)
    assert names(client.list_blobs(name_starts_with="07/", results_per_page=33)) == [f"07/{n:02d}" for n in range(100)]


def test_three_thousand_blobs_fold_into_thirty_prefixes(many):
    client, _ = many
    assert names(client.walk_blobs(delimiter="/")) == [f"{n:02d}/" for n in range(30)]
    assert names(client.walk_blobs(delimiter="/", results_per_page=7)) == [f"{n:02d}/" for n in range(30)]


def test_marker_continues_after_what_was_deleted(container):
    for index in range(10):
        container.upload_blob(f"n{index}", b"x")
    iterator = container.list_blobs(results_per_page=4).by_page()
    assert names(next(iterator)) == ["n0", "n1", "n2", "n3"]
    token = iterator.continuation_token
    for gone in ("n3", "n4", "n5"):
        container.delete_blob(gone)
    container.upload_blob("n0-new", b"x")
    container.upload_blob("n6-new", b"x")
    assert names(container.list_blobs(results_per_page=100).by_page(token).next()) == [
        "n6",
        "n6-new",
        "n7",
        "n8",
        "n9",
    ]


def test_item_tells_every_property(container):
    settings = ContentSettings(
        content_type="text/plain",
        content_encoding="identity",
        content_language="en",
        content_disposition="inline",
        cache_control="no-cache",
    )
    client = container.get_blob_client("b")
    client.upload_blob(b"content", content_settings=settings, metadata={"Key": "value"})
    expected = client.get_blob_properties()
    (item,) = container.list_blobs(include=["metadata"])
    assert item.name == "b"
    assert item.container == container.container_name
    assert item.size == 7
    assert item.blob_type == "BlockBlob"
    assert item.etag.strip('"') == expected.etag.strip('"')
    assert item.last_modified == expected.last_modified
    assert item.creation_time == expected.creation_time
    assert item.metadata == {"Key": "value"}
    assert item.server_encrypted is True
    assert (item.blob_tier, item.blob_tier_inferred) == ("Hot", True)
    assert (item.lease.state, item.lease.status) == ("available", "unlocked")
    stored = item.content_settings
    assert bytes(stored.content_md5) == md5(b"content")
    assert (
        stored.content_type,
        stored.content_encoding,
        stored.content_language,
        stored.content_disposition,
        stored.cache_control,
    ) == ("text/plain", "identity", "en", "inline", "no-cache")


def test_metadata_is_listed_only_when_asked_for(container):
    container.upload_blob("b", b"x", metadata={"a": "1"})
    (item,) = container.list_blobs()
    assert not item.metadata


def test_names_only_listing(tree):
    assert list(tree.list_blob_names()) == TREE
    assert list(tree.list_blob_names(name_starts_with="a/")) == ["a/1", "a/2", "a/b/1", "a/b/2"]


def test_shape_of_the_answer(tree, raw, account):
    path = f"/{tree.container_name}"
    answer = raw.send("GET", path, "restype=container&comp=list&maxresults=2&prefix=a&delimiter=%2F")
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "application/xml"
    root = answer.xml()
    assert root.tag == "EnumerationResults"
    assert root.attrib["ContainerName"] == tree.container_name
    assert root.attrib["ServiceEndpoint"].rstrip("/") == account.endpoint.geturl().rstrip("/")
    assert (root.findtext("Prefix"), root.findtext("MaxResults"), root.findtext("Delimiter")) == ("a", "2", "/")
    assert root.findtext("NextMarker")
    assert sorted(child.tag for child in root.find("Blobs")) == ["Blob", "BlobPrefix"]
    assert ETAG.match('"' + root.findtext("Blobs/Blob/Properties/Etag").strip('"') + '"')
    last = raw.send("GET", path, "restype=container&comp=list").xml()
    assert last.find("NextMarker") is not None and not last.findtext("NextMarker")


@pytest.mark.parametrize(
    "query",
    ["maxresults=0", "maxresults=-1", "maxresults=many", "include=nonsense"],
)
def test_bad_list_parameter_is_refused(container, raw, query):
    answer = raw.send("GET", f"/{container.container_name}", f"restype=container&comp=list&{query}")
    assert answer.status == 400
    if query in ("maxresults=0", "maxresults=-1"):
        assert answer.code == "OutOfRangeQueryParameterValue"


def test_more_than_five_thousand_is_capped(container, raw):
    answer = raw.send("GET", f"/{container.container_name}", "restype=container&comp=list&maxresults=5001")
    assert answer.status == 200


def test_snapshots_with_delimiter_are_refused(container, raw):
    query = "restype=container&comp=list&delimiter=%2F&include=snapshots"
    assert raw.send("GET", f"/{container.container_name}", query).status == 400
