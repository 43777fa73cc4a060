"""How much a share holds, and the quota that it keeps within."""

from concurrent.futures import ThreadPoolExecutor

from azure.core.exceptions import HttpResponseError
from support import refused

MIB = 1024 * 1024
GIB = 1024 * MIB


def test_usage_follows_the_lengths_of_files(share):
    assert share.get_share_stats() == 0
    file = share.get_file_client("a file")
    file.create_file(5 * MIB)
    assert share.get_share_stats() == 5 * MIB
    file.resize_file(7 * MIB)
    assert share.get_share_stats() == 7 * MIB
    file.upload_range(b"x" * 512, 0, 512)
    assert share.get_share_stats() == 7 * MIB
    file.create_file(3)
    assert share.get_share_stats() == 3
    share.create_directory("d")
    renamed = file.rename_file("d/b")
    assert share.get_share_stats() == 3
    copy = share.get_file_client("copy")
    copy.start_copy_from_url(renamed.url)
    assert share.get_share_stats() == 6
    # What only a snapshot sees is not counted.
    share.create_snapshot()
    copy.delete_file()
    assert share.get_share_stats() == 3
    renamed.delete_file()
    assert share.get_share_stats() == 0


def test_a_share_holds_no_more_than_its_quota(share):
    share.set_share_properties(quota=1)
    file = share.get_file_client("a file")
    with refused(403, "ShareSizeLimitReached"):
        file.create_file(GIB + 1)
    file.create_file(GIB - 1)
    with refused(403, "ShareSizeLimitReached"):
        file.resize_file(GIB + 1)
    other = share.get_file_client("other")
    with refused(403, "ShareSizeLimitReached"):
        other.create_file(2)
    other.create_file(0)
    with refused(403, "ShareSizeLimitReached"):
        other.start_copy_from_url(file.url)
    other.resize_file(1)
    assert share.get_share_stats() == GIB
    file.upload_range(b"x", 0, 1)
    # A smaller quota takes nothing away, and what shrinks may shrink.
    file.resize_file(10)
    other.create_file(GIB - 10)
    share.set_share_properties(quota=2)
    file.resize_file(GIB)
    share.set_share_properties(quota=1)
    with refused(403, "ShareSizeLimitReached"):
        file.resize_file(GIB + 1)
    file.resize_file(10)
    assert share.get_share_stats() == GIB


def test_files_that_are_written_at_once_do_not_pass_the_quota_together(share):
    share.set_share_properties(quota=1)

    def create(at):
        try:
            share.get_file_client(f"file-{at}").create_file(100 * MIB)
            return True
        except HttpResponseError as error:
            assert error.error_code == "ShareSizeLimitReached"
            return False

    with ThreadPoolExecutor(8) as pool:
        created = sum(pool.map(create, range(24)))
    assert created == 10
    assert share.get_share_stats() == 1000 * MIB
    assert share.get_share_properties().quota == 1
