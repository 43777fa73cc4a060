"""Static websites: what a browser gets at the web endpoint of the account."""

import os
import urllib.parse
from dataclasses import replace

import pytest
from azure.core.exceptions import ResourceExistsError
from azure.storage.blob import ContentSettings, StaticWebsite

HTML = ContentSettings(content_type="text/html", cache_control="max-age=60")
PAGES = {
    "index.html": b"<p>start</p>",
    "about": b"<p>about</p>",
    "docs/index.html": b"<p>documentation</p>",
    "docs/a b+ä.html": b"<p>awkward</p>",
    "errors/404.html": b"<p>nothing here</p>",
    "app/start.html": b"<p>app</p>",
}


@pytest.fixture(scope="module")
def website(service):
    """The container `$web`: it is filled, and restored at the end."""
    container = service.get_container_client("$web")
    try:
        container.create_container()
        created = True
    except ResourceExistsError:
        created = False
    for name, content in PAGES.items():
        container.upload_blob(name, content, overwrite=True, content_settings=HTML, metadata={"secret": "yes"})
    yield container
    service.set_service_properties(static_website=StaticWebsite(enabled=False))
    if created:
        container.delete_container()
    else:
        for name in PAGES:
            container.delete_blob(name)


@pytest.fixture
def documents(service, website):
    """Sets the documents of the website."""

    def set_documents(**documents):
        service.set_service_properties(static_website=StaticWebsite(enabled=True, **documents))

    set_documents(index_document="index.html", error_document404_path="errors/404.html")
    return set_documents


@pytest.fixture(params=["web", "z6.web"])
def browse(request, raw, account):
    def send(path, method="GET", headers=None):
        host = f"{account.name}.{request.param}.localhost:{account.endpoint.port}"
        return raw.exchange(method, path, headers or {}, None, host)

    return send


def test_documents_are_found(documents, browse):
    for path, name in (
        ("/", "index.html"),
        ("/index.html", "index.html"),
        ("/about", "about"),
        ("/docs/", "docs/index.html"),
        ("/docs", "docs/index.html"),
        ("/docs%5Cindex.html", "docs/index.html"),
        ("/docs/a%20b+%C3%A4.html", "docs/a b+ä.html"),
        ("/?comp=list&restype=container", "index.html"),
    ):
        answer = browse(path)
        assert (answer.status, answer.body) == (200, PAGES[name]), path
        assert answer.headers["Content-Type"] == "text/html"
        assert answer.headers["Cache-Control"] == "max-age=60"
        assert answer.headers["Server"].startswith("Windows-Azure-Web/")


def test_nothing_is_told_of_the_blob_but_its_content(documents, browse):
    own = {name.lower() for name in browse("/").headers if name.lower().startswith("x-ms-")}
    assert own == {"x-ms-request-id", "x-ms-version"}


def test_a_head_is_a_get_without_the_content(documents, browse):
    answer, whole = browse("/", "HEAD"), browse("/")
    assert (answer.status, answer.body) == (200, b"")
    for name in ("Content-Length", "Content-Type", "ETag", "Last-Modified"):
        assert answer.headers[name] == whole.headers[name]


def test_what_is_not_there_is_the_error_document(documents, browse):
    for path in ("/nothing", "/nothing/", "/docs/nothing.html", "/" + "a" * 1100, "/%FF"):
        answer = browse(path)
        assert answer.status == (400 if path == "/%FF" else 404), path
        if answer.status == 404:
            assert answer.body == PAGES["errors/404.html"], path
    head = browse("/nothing", "HEAD")
    assert (head.status, head.body) == (404, b"")
    conditional = browse("/nothing", headers={"If-None-Match": '"other"', "Range": "bytes=0-1"})
    assert (conditional.status, conditional.body) == (404, PAGES["errors/404.html"])


@pytest.mark.parametrize("document", [None, "errors/absent.html"])
def test_without_an_error_document_there_is_a_small_page(documents, browse, document):
    documents(index_document="index.html", error_document404_path=document)
    answer = browse("/nothing")
    assert (answer.status, answer.headers["Content-Type"]) == (404, "text/html")
    assert answer.headers["x-ms-error-code"] == "WebContentNotFound"
    assert b"WebContentNotFound" in answer.body and answer.headers["x-ms-request-id"].encode() in answer.body


def test_the_default_document_is_that_of_every_folder(documents, browse):
    documents(default_index_document_path="app/start.html")
    for path in ("/", "/docs/", "/anywhere/"):
        assert browse(path).body == PAGES["app/start.html"], path
    assert browse("/docs").status == 404
    assert browse("/about").body == PAGES["about"]


def test_conditions(documents, browse):
    etag = browse("/").headers["ETag"]
    same = browse("/", headers={"If-None-Match": etag})
    assert (same.status, same.body, same.headers["ETag"]) == (304, b"", etag)
    assert browse("/", headers={"If-None-Match": '"other"'}).status == 200
    assert browse("/", headers={"If-Match": '"other"'}).status == 412
    since = browse("/").headers["Last-Modified"]
    assert browse("/", headers={"If-Modified-Since": since}).status == 304


def test_ranges(documents, browse):
    content = PAGES["index.html"]
    part = browse("/", headers={"Range": "bytes=3-6"})
    assert (part.status, part.body) == (206, content[3:7])
    assert part.headers["Content-Range"] == f"bytes 3-6/{len(content)}"
    assert browse("/", headers={"Range": "bytes=1000-"}).status == 416
    whole = browse("/", headers={"Range": "bytes=3-6", "If-Range": '"other"'})
    assert (whole.status, whole.body) == (200, content)


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE", "OPTIONS", "PATCH"])
def test_a_website_can_only_be_read(documents, browse, method):
    answer = browse("/about", method)
    assert answer.status == 405
    assert answer.headers["Allow"] == "GET, HEAD"
    assert browse("/about").status == 200


def test_a_website_that_is_off_has_nothing(service, website, browse):
    service.set_service_properties(static_website=StaticWebsite(enabled=False))
    answer = browse("/")
    assert (answer.status, answer.headers["x-ms-error-code"]) == (404, "WebContentNotFound")


def test_nobody_has_no_website(documents, raw, account):
    host = f"nobody.web.localhost:{account.endpoint.port}"
    assert raw.exchange("GET", "/", {}, None, host).status == 404


def test_the_container_is_as_private_as_ever(documents, raw):
    assert raw.send("GET", "/$web/index.html", sign=False).status == 401


def test_the_port_of_its_own(documents, raw, account):
    if not (endpoint := os.environ.get("CONFORMANCE_WEB_ENDPOINT")):
        pytest.skip("CONFORMANCE_WEB_ENDPOINT is not set")
    there = replace(raw, account=replace(account, endpoint=urllib.parse.urlsplit(endpoint)))
    for host in (None, f"{account.name}.localhost", f"{account.name}.web.localhost", f"{account.name}.z1.web.localhost"):
        answer = there.exchange("GET", "/docs/", {}, None, host)
        assert (answer.status, answer.body) == (200, PAGES["docs/index.html"]), host
