"""One share by REST and by SMB at the same time: every sharing rule in both directions."""

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobClient, BlobServiceClient
from azure.storage.fileshare import ContentSettings, ShareLeaseClient, ShareServiceClient
from smbprotocol.exceptions import SMBResponseException
from smbprotocol.header import NtStatus
from smbprotocol.open import CreateDisposition, CreateOptions, RequestedOplockLevel, ShareAccess

import smb_support as smb
from smb_support import DELETE, READ, SHARE_ALL, SHARE_NONE, WRITE
from support import Account, connection_string, readable, unique

# As long as one page.
CONTENT = b"the first content".ljust(512, b".")


@pytest.fixture(scope="module")
def share():
    smb.endpoint()
    with ShareServiceClient.from_connection_string(connection_string(), retry_total=0) as service:
        client = service.create_share(unique("sharing"))
        yield client
        client.delete_share()


@pytest.fixture
def tree(share):
    account = Account.under_test("File")
    tree = smb.Tree(share.share_name, account.name, account.key)
    yield tree
    tree.disconnect()


@pytest.fixture
def other_tree(share):
    account = Account.under_test("File")
    tree = smb.Tree(share.share_name, account.name, account.key)
    yield tree
    tree.disconnect()


@pytest.fixture
def file(share):
    client = share.get_file_client(unique("file"))
    client.upload_file(CONTENT)
    return client


def refusal(call) -> tuple[int, str]:
    with pytest.raises(HttpResponseError) as refused:
        call()
    return refused.value.status_code, refused.value.error_code


def smb_refusal(call) -> int:
    with pytest.raises(SMBResponseException) as refused:
        call()
    return refused.value.status


def operations(file):
    """Each REST operation of the table of share modes."""
    return {
        "create": lambda: file.create_file(len(CONTENT)),
        "get": lambda: file.download_file().readall(),
        "set properties": lambda: file.set_http_headers(ContentSettings(), file_attributes="Archive"),
        "set metadata": lambda: file.set_file_metadata({"a": "b"}),
        "delete": lambda: file.delete_file(),
        "put range": lambda: file.upload_range(b"other", 0, 5),
        "list ranges": lambda: file.get_ranges(),
        "lease": lambda: file.acquire_lease().release(),
    }


R, W, D = ShareAccess.FILE_SHARE_READ, ShareAccess.FILE_SHARE_WRITE, ShareAccess.FILE_SHARE_DELETE


@pytest.fixture(scope="module")
def container():
    with BlobServiceClient.from_connection_string(connection_string(), retry_total=0) as service:
        client = service.create_container(unique("sharing"))
        yield client
        client.delete_container()


def copies(share, container, source):
    """Each operation that reads a file as its source; what it makes has the same bytes."""
    file, length = share.get_file_client(unique("copy")), len(CONTENT)
    blob, pages = container.get_blob_client(unique("blob")), container.get_blob_client(unique("pages"))
    appended = container.get_blob_client(unique("appended"))

    def put_range():
        file.create_file(length)
        file.upload_range_from_url(readable(source), 0, length, 0)

    def put_block():
        blob.stage_block_from_url("AAAA", readable(source))
        blob.commit_block_list(["AAAA"])

    def append_block():
        appended.create_append_blob()
        appended.append_block_from_url(readable(source))

    def put_page():
        pages.create_page_blob(512)
        pages.upload_pages_from_url(readable(source), 0, 512, 0)

    return {
        "Copy File": (lambda: file.start_copy_from_url(source.url), file),
        "Put Range from URL": (put_range, file),
        "Copy Blob": (lambda: blob.start_copy_from_url(source.url), blob),
        "Copy Blob from URL": (lambda: blob.start_copy_from_url(readable(source), requires_sync=True), blob),
        "Put Blob from URL": (lambda: blob.upload_blob_from_url(readable(source)), blob),
        "Put Block from URL": (put_block, blob),
        "Append Block from URL": (append_block, appended),
        "Put Page from URL": (put_page, pages),
    }


def content(client) -> bytes:
    return (client.download_blob() if isinstance(client, BlobClient) else client.download_file()).readall()


COPIES = [
    "Copy File",
    "Put Range from URL",
    "Copy Blob",
    "Copy Blob from URL",
    "Put Blob from URL",
    "Put Block from URL",
    "Append Block from URL",
    "Put Page from URL",
]


@pytest.fixture
def source(share):
    client = share.get_file_client(unique("source"))
    client.upload_file(CONTENT)
    return client


@pytest.mark.parametrize("name", COPIES)
def test_the_source_of_a_copy_respects_the_share_mode_of_an_open(tree, share, container, source, name):
    for sharing in (SHARE_NONE, W | D):
        opened = tree.open(source.file_name, READ, sharing)
        copy, _ = copies(share, container, source)[name]
        assert refusal(copy) == (409, "CannotVerifyCopySource")
        opened.close()
    opened = tree.open(source.file_name, READ, R)
    copy, made = copies(share, container, source)[name]
    copy()
    assert content(made) == CONTENT
    opened.close()


@pytest.mark.parametrize("name", COPIES)
def test_a_byte_range_lock_stops_the_source_of_a_copy_no_more_than_get_file(tree, share, container, source, name):
    opened = tree.open(source.file_name, READ | WRITE)
    tree.lock(opened, 0, 10, smb.LOCK_EXCLUSIVE | smb.LOCK_FAIL_IMMEDIATELY)
    assert source.download_file().readall() == CONTENT
    copy, made = copies(share, container, source)[name]
    copy()
    assert content(made) == CONTENT
    opened.close()


@pytest.mark.parametrize("name", COPIES)
def test_the_source_of_a_copy_breaks_an_oplock_and_has_the_flushed_bytes(tree, share, container, source, name):
    opened = tree.open(
        source.file_name, READ | WRITE, SHARE_ALL, oplock=RequestedOplockLevel.SMB2_OPLOCK_LEVEL_BATCH
    )
    flushed = b"flushed".ljust(len(CONTENT), b".")
    acknowledged = tree.acknowledge_break(opened, before=lambda: opened.write(flushed, 0))
    copy, made = copies(share, container, source)[name]
    copy()
    assert content(made) == flushed
    acknowledged.join()
    opened.close()


@pytest.mark.parametrize("name", COPIES)
def test_a_file_pending_delete_is_no_source_of_a_copy(tree, share, container, source, name):
    opened = tree.open(source.file_name, READ | DELETE, SHARE_ALL)
    tree.dispose(opened)
    copy, _ = copies(share, container, source)[name]
    assert refusal(copy) == (409, "CannotVerifyCopySource")
    tree.dispose(opened, delete=False)
    copy, made = copies(share, container, source)[name]
    copy()
    assert content(made) == CONTENT
    opened.close()


EVERYTHING = {"create", "get", "set properties", "set metadata", "delete", "put range", "list ranges", "lease"}
WRITES = {"set properties", "set metadata", "put range"}
READS = {"get", "list ranges"}


@pytest.mark.parametrize(
    ("sharing", "refused"),
    [
        (0, EVERYTHING),
        (R, EVERYTHING - READS),
        (W, EVERYTHING - WRITES),
        (D, EVERYTHING),
        (R | W, {"create", "delete", "lease"}),
        (R | D, EVERYTHING - READS),
        (W | D, {"get", "delete", "list ranges", "lease"}),
        (R | W | D, {"delete"}),
    ],
)
def test_a_rest_call_respects_the_share_mode_of_an_open(tree, share, sharing, refused):
    for name in sorted(EVERYTHING):
        file = share.get_file_client(unique("file"))
        file.upload_file(CONTENT)
        opened = tree.open(file.file_name, READ, sharing)
        call = operations(file)[name]
        if name in refused:
            assert refusal(call) == (409, "SharingViolation"), name
        else:
            call()
        opened.close()
        if name in refused:
            operations(file)[name]()


def test_an_open_for_writing_is_refused_while_a_rest_lease_is_held(tree, file):
    lease = file.acquire_lease()
    for access in [WRITE, DELETE, READ | WRITE]:
        status = smb_refusal(lambda: tree.open(file.file_name, access))
        assert status == NtStatus.STATUS_SHARING_VIOLATION
    tree.open(file.file_name, READ).close()
    ShareLeaseClient(file, lease.id).break_lease()
    tree.open(file.file_name, WRITE).close()


@pytest.mark.parametrize(("access", "allowed"), [(READ, True), (WRITE, False), (DELETE, False)])
def test_a_rest_lease_is_refused_while_an_open_may_write(tree, file, access, allowed):
    opened = tree.open(file.file_name, access, SHARE_ALL)
    if allowed:
        file.acquire_lease().release()
    else:
        assert refusal(file.acquire_lease) == (409, "SharingViolation")
        opened.close()
        file.acquire_lease().release()


def test_a_byte_range_lock_refuses_put_range_anywhere_in_the_file(tree, file):
    opened = tree.open(file.file_name, READ | WRITE)
    tree.lock(opened, 1000, 10, smb.LOCK_EXCLUSIVE | smb.LOCK_FAIL_IMMEDIATELY)
    assert refusal(lambda: file.upload_range(b"other", 0, 5)) == (409, "FileLockConflict")
    assert file.download_file().readall() == CONTENT
    tree.lock(opened, 1000, 10, smb.LOCK_UNLOCK)
    file.upload_range(b"other", 0, 5)
    assert opened.read(0, 5) == b"other"


def test_a_file_pending_delete_refuses_every_call_and_is_hidden(tree, share, file):
    options = CreateOptions.FILE_NON_DIRECTORY_FILE | CreateOptions.FILE_DELETE_ON_CLOSE
    opened = tree.open(file.file_name, READ | DELETE, SHARE_ALL, options=options)
    second = tree.open(file.file_name, READ, SHARE_ALL)
    opened.close()
    for name, call in operations(file).items():
        assert refusal(call) == (409, "SMBDeletePending"), name
    assert refusal(file.get_file_properties)[0] == 409
    assert file.file_name not in [entry["name"] for entry in share.list_directories_and_files()]
    assert smb_refusal(lambda: tree.open(file.file_name)) == NtStatus.STATUS_DELETE_PENDING
    second.close()
    assert refusal(file.get_file_properties)[0] == 404
    assert smb_refusal(lambda: tree.open(file.file_name)) == NtStatus.STATUS_OBJECT_NAME_NOT_FOUND


def test_each_protocol_sees_what_the_other_wrote_at_once(tree, file):
    opened = tree.open(file.file_name, READ | WRITE)
    opened.write(b"THE", 0)
    assert file.download_file().readall() == b"THE" + CONTENT[3:]
    file.upload_range(b"LAST ", 4, 5)
    assert opened.read(0, 17) == b"THE LAST  content"
    opened.close()


def test_a_rest_read_breaks_an_oplock_and_gets_the_flushed_bytes(tree, file):
    opened = tree.open(
        file.file_name, READ | WRITE, SHARE_ALL, oplock=RequestedOplockLevel.SMB2_OPLOCK_LEVEL_BATCH
    )
    acknowledged = tree.acknowledge_break(opened, before=lambda: opened.write(b"flushed", 0))
    assert file.download_file().readall() == b"flushed" + CONTENT[7:]
    acknowledged.join()
    opened.close()


def test_an_oplock_that_is_not_given_back_delays_and_then_refuses(tree, file):
    opened = tree.open(
        file.file_name, READ | WRITE, SHARE_ALL, oplock=RequestedOplockLevel.SMB2_OPLOCK_LEVEL_BATCH
    )
    assert refusal(lambda: file.download_file(timeout=1)) == (408, "ClientCacheFlushDelay")
    opened.close()
    assert file.download_file().readall() == CONTENT


def test_force_close_frees_the_file(tree, file):
    tree.open(file.file_name, READ | WRITE, SHARE_NONE)
    assert refusal(lambda: file.upload_range(b"other", 0, 5)) == (409, "SharingViolation")
    handles = list(file.list_handles())
    assert [handle.client_name for handle in handles] == [smb.MACHINE]
    assert file.close_handle(handles[0]) == {"closed_handles_count": 1, "failed_handles_count": 0}
    file.upload_range(b"other", 0, 5)
    assert list(file.list_handles()) == []


def test_a_directory_with_something_open_below_it_is_not_renamed(tree, share):
    name = unique("directory")
    directory = share.get_directory_client(name)
    directory.create_directory()
    directory.create_subdirectory("below").upload_file("file", CONTENT)
    opened = tree.open(rf"{name}\below\file")
    assert refusal(lambda: directory.rename_directory(f"{name}-new")) == (409, "SharingViolation")
    opened.close()
    directory.rename_directory(f"{name}-new")
    assert share.get_file_client(f"{name}-new/below/file").download_file().readall() == CONTENT


def test_two_opens_conflict_as_two_protocols_do(tree, other_tree, file):
    tree.open(file.file_name, READ, SHARE_NONE)
    assert smb_refusal(lambda: other_tree.open(file.file_name)) == NtStatus.STATUS_SHARING_VIOLATION


def test_what_smb_creates_rest_lists_and_the_other_way_round(tree, share):
    opened = tree.open("By SMB.txt", READ | WRITE, SHARE_ALL, CreateDisposition.FILE_CREATE)
    opened.write(b"hello", 0)
    opened.close()
    assert share.get_file_client("by smb.TXT").download_file().readall() == b"hello"
    share.get_directory_client("By REST").create_directory()
    options = CreateOptions.FILE_DIRECTORY_FILE
    directory = tree.open("by rest", READ, SHARE_ALL, options=options)
    directory.close()
    share.get_file_client("by smb.txt").delete_file()
    assert smb_refusal(lambda: tree.open("By SMB.txt")) == NtStatus.STATUS_OBJECT_NAME_NOT_FOUND


def children(share, directory: str) -> list[str]:
    return [entry["name"] for entry in share.list_directories_and_files(directory)]


def additions(share, directory: str):
    """Every call that would bring something into a directory."""
    source = share.get_file_client(unique("source"))
    source.upload_file(CONTENT)
    folder = share.create_directory(unique("folder"))
    new = share.get_file_client(f"{directory}/new")
    return {
        "Create File": lambda: new.create_file(10),
        "Create Directory": lambda: share.create_directory(f"{directory}/new"),
        "Copy File": lambda: new.start_copy_from_url(source.url),
        "Rename File": lambda: source.rename_file(f"{directory}/new"),
        "Rename Directory": lambda: folder.rename_directory(f"{directory}/new"),
    }


DIRECTORY = CreateOptions.FILE_DIRECTORY_FILE
DELETE_ON_CLOSE = CreateOptions.FILE_DELETE_ON_CLOSE


@pytest.mark.parametrize("way", ["disposition", "delete on close", "closed"])
def test_nothing_comes_into_a_directory_that_smb_deletes(tree, other_tree, share, way):
    name = unique("doomed")
    directory = share.create_directory(name)
    options = DIRECTORY if way == "disposition" else DIRECTORY | DELETE_ON_CLOSE
    opened = tree.open(name, READ | DELETE, options=options)
    second = None
    if way == "disposition":
        tree.dispose(opened)
    elif way == "closed":
        second = other_tree.open(name, options=DIRECTORY)
        opened.close()
    for operation, call in additions(share, name).items():
        assert refusal(call) == (409, "SMBDeletePending"), operation
    for kind in (DIRECTORY, CreateOptions.FILE_NON_DIRECTORY_FILE):
        create = CreateDisposition.FILE_CREATE
        refused = smb_refusal(lambda: other_tree.open(rf"{name}\new", disposition=create, options=kind))
        assert refused == NtStatus.STATUS_DELETE_PENDING
    (second or opened).close()
    assert refusal(directory.get_directory_properties)[0] == 404
    share.create_directory(name)
    share.get_file_client(f"{name}/new").create_file(10)
    assert children(share, name) == ["new"]


def test_a_directory_that_rest_has_filled_is_not_marked_for_deletion(tree, share):
    name = unique("kept")
    share.create_directory(name)
    opened = tree.open(name, READ | DELETE, options=DIRECTORY)
    share.get_file_client(f"{name}/child").create_file(10)
    assert smb_refusal(lambda: tree.dispose(opened)) == NtStatus.STATUS_DIRECTORY_NOT_EMPTY
    opened.close()
    assert children(share, name) == ["child"]


ADDED, REMOVED, MODIFIED, OLD_NAME, NEW_NAME = range(1, 6)


def test_a_watch_of_smb_hears_of_every_change_by_rest(tree, share):
    name = unique("watched")
    share.create_directory(name)
    share.create_directory(f"{name}/below")
    opened = tree.open(name, READ, options=DIRECTORY)
    file = share.get_file_client(f"{name}/file")
    copy = share.get_file_client(f"{name}/copy")
    deep = share.get_file_client(f"{name}/below/deep")

    def heard(call) -> list[tuple[int, str]]:
        waiting = tree.watch(opened, recursive=True)
        call()
        return tree.changes(waiting)

    assert heard(lambda: file.create_file(0)) == [(ADDED, "file")]
    assert heard(lambda: file.resize_file(100)) == [(MODIFIED, "file")]
    assert heard(lambda: file.upload_range(b"x" * 10, 0, 10)) == [(MODIFIED, "file")]
    assert heard(lambda: file.set_file_metadata({"a": "b"})) == [(MODIFIED, "file")]
    assert heard(lambda: file.set_http_headers(ContentSettings(), file_attributes="Hidden")) == [(MODIFIED, "file")]
    permission = "O:SYG:SYD:(A;;FA;;;SY)"
    assert heard(lambda: file.set_http_headers(ContentSettings(), file_permission=permission)) == [(MODIFIED, "file")]
    assert heard(lambda: copy.start_copy_from_url(file.url))[0] == (ADDED, "copy")
    assert heard(lambda: copy.rename_file(f"{name}/named")) == [(OLD_NAME, "copy"), (NEW_NAME, "named")]
    assert heard(lambda: deep.create_file(0)) == [(ADDED, r"below\deep")]
    assert heard(deep.delete_file) == [(REMOVED, r"below\deep")]
    assert heard(lambda: share.delete_directory(f"{name}/below")) == [(REMOVED, "below")]
    assert heard(lambda: share.create_directory(f"{name}/again")) == [(ADDED, "again")]
    opened.close()


def test_a_connection_to_a_deleted_share_does_not_lead_to_another_of_its_name(share):
    deleted = NtStatus.STATUS_NETWORK_NAME_DELETED
    account = Account.under_test("File")
    name = unique("again")
    with ShareServiceClient.from_connection_string(connection_string(), retry_total=0) as service:
        service.create_share(name).get_file_client("file").upload_file(CONTENT)
        tree = smb.Tree(name, account.name, account.key)
        opened = tree.open("file", READ | WRITE)
        service.delete_share(name)
        assert smb_refusal(lambda: opened.read(0, 5)) == deleted
        other = service.create_share(name)
        other.get_file_client("file").upload_file(b"another")
        for call in (lambda: opened.read(0, 5), lambda: opened.write(b"x", 0), lambda: tree.open("file")):
            assert smb_refusal(call) == deleted
        create = CreateDisposition.FILE_CREATE
        assert smb_refusal(lambda: tree.open("new", WRITE, disposition=create)) == deleted
        assert children(other, "") == ["file"]
        assert other.get_file_client("file").download_file().readall() == b"another"
        tree.disconnect()
        again = smb.Tree(name, account.name, account.key)
        assert again.open("file").read(0, 7) == b"another"
        again.disconnect()
        other.delete_share()
