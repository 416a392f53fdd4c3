"""Who we say we are to a Prometheus, and that no secret is ever told: in faults, logs or reprs."""

import base64
import logging
import shutil
import ssl
import subprocess
from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from collectors.prometheus import Prometheus
from collectors.prometheus_http import Fault, Patience
from collectors.prometheus_segments import HOUR, Segment, State
from collectors.prometheus_selectors import Group
from models.config_errors import described
from models.parts import Part
from models.prometheus import PrometheusSource
from tests.prometheus_server import BEGIN, Proxy, says, source

SECRET = "s3cr3t-T0ken"
EMPTY = b'{"status":"success","data":{"resultType":"matrix","result":[]}}'
ASKED = Segment(Group.of("up"), BEGIN, BEGIN + HOUR)
ONCE = Patience(attempts=1)


class Holder(Part):
    """A configuration that has sources."""

    sources: tuple[PrometheusSource, ...] = ()


class Echo(Proxy):
    """A server that notes the headers it is sent; nothing stands behind it."""

    answer = staticmethod(lambda handler, _: handler.give(200, EMPTY))

    def fetch(self, handler, form):
        return 200, EMPTY


@pytest.fixture
def server():
    echo = Echo(0, lambda path, number: echo.answer)
    yield echo
    echo.close()


def asked(told):
    with Prometheus(told, ONCE) as client:
        (one,) = client.collect([ASKED])
        return one


def test_a_token_is_read_anew_for_each_question(server, tmp_path):
    token = tmp_path / "token"
    told = source(server.url, auth={"bearer": {"file": str(token)}})
    with Prometheus(told, ONCE) as client:
        for text in ("first\n", "second"):
            token.write_text(text)
            list(client.collect([ASKED]))
    assert [h["Authorization"] for h in server.headers] == ["Bearer first", "Bearer second"]


def test_a_name_and_a_password_a_tenant_and_headers_are_sent_as_told(server, monkeypatch):
    monkeypatch.setenv("PASSWORD", "pä:ss")
    monkeypatch.setenv("KEY", SECRET)
    told = source(
        server.url,
        auth={"basic": {"user": "me", "password": {"env": "PASSWORD"}}},
        tenant="a|b",
        headers={"X-Plain": "yes"},
        secret_headers={"X-Key": {"env": "KEY"}},
    )
    assert asked(told).state is State.COMPLETE
    with Prometheus(told, ONCE) as client:
        client.discovery.instant("up", BEGIN)
    assert len(server.headers) == 2
    for sent in server.headers:
        assert sent["Authorization"] == "Basic " + base64.b64encode("me:pä:ss".encode()).decode()
        assert (sent["X-Scope-OrgID"], sent["X-Plain"], sent["X-Key"]) == ("a|b", "yes", SECRET)


def test_a_netrc_file_does_not_speak_for_us(server, tmp_path, monkeypatch):
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login other password other\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    asked(source(server.url))
    assert "Authorization" not in server.headers[0]


@pytest.mark.parametrize("way", ["bearer", "basic", "header"])
def test_a_server_that_repeats_our_secret_does_not_make_us_tell_it(
    server, way, monkeypatch, caplog
):
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("SECRET", SECRET)
    kept = {"env": "SECRET"}
    told = {
        "bearer": {"auth": {"bearer": kept}},
        "basic": {"auth": {"basic": {"user": "me", "password": kept}}},
        "header": {"secret_headers": {"X-Key": kept}},
    }[way]
    pair = base64.b64encode(f"me:{SECRET}".encode()).decode()
    server.answer = says(400, f"you sent {SECRET} or {pair}")
    told = source(server.url, **told)
    one = asked(told)
    assert one.state is State.MISSING
    assert "you sent" in one.stretches[0].reason
    with Prometheus(told, ONCE) as client, pytest.raises(Fault) as caught:
        client.discovery.metrics(0, 1)
    said = f"{one} {caught.value!r} {caught.value.__cause__} {told!r} {caplog.text}"
    assert SECRET not in said
    assert pair not in said or way != "basic"


@pytest.mark.parametrize("text", [None, "", "two\nlines", "schlüssel"])
def test_a_secret_that_cannot_be_used_is_a_reason_that_names_its_place_only(server, text, tmp_path):
    file = tmp_path / "token"
    if text is not None:
        file.write_text(text)
    one = asked(source(server.url, auth={"bearer": {"file": str(file)}}))
    assert one.stretches[0].reason.startswith("secret: ")
    assert not text or text not in one.stretches[0].reason
    assert not server.asked


def test_both_sides_show_certificates_and_the_wrong_authority_is_refused(tmp_path, server, require):
    require("openssl", shutil.which("openssl"), "install Debian's package openssl")
    certificates(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem", tmp_path / "server.key")
    context.load_verify_locations(tmp_path / "ca.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    server.httpd.socket = context.wrap_socket(server.httpd.socket, server_side=True)
    url = server.url.replace("http://127.0.0.1", "https://localhost")
    sound = {
        "authority": str(tmp_path / "ca.pem"),
        "certificate": str(tmp_path / "client.pem"),
        "key": str(tmp_path / "client.key"),
    }
    assert asked(source(url, auth={"tls": sound})).state is State.COMPLETE
    other = asked(source(url, auth={"tls": {**sound, "authority": str(tmp_path / "other.pem")}}))
    assert other.stretches[0].reason.startswith("certificate")
    stranger = asked(source(url, auth={"tls": {"authority": sound["authority"]}}))
    assert stranger.state is State.MISSING


def certificates(folder) -> None:
    """An authority, certificates for both sides, and an authority that signed neither."""

    def run(*words):
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

    for name in ("ca", "other"):
        new = ("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2")
        run(*new, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.pem")
    (folder / "names").write_text("subjectAltName=DNS:localhost\n")
    for name in ("server", "client"):
        new = ("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}")
        run(*new, "-keyout", f"{name}.key", "-out", f"{name}.csr")
        sign = ("x509", "-req", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial")
        run(*sign, "-days", "2", "-extfile", "names", "-in", f"{name}.csr", "-out", f"{name}.pem")


def faults(**keys) -> str:
    """What is said of a source with these keys."""
    sound = {"kind": "prometheus", "url": "http://p"}
    told = {key: value for key, value in {**sound, **keys}.items() if value is not None}
    with pytest.raises(ValidationError) as caught:
        Holder.model_validate({"sources": [told]})
    return "\n".join(described(caught.value, Holder))


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"tenat": "x"}, "sources[0].tenat: unknown key; the nearest valid one is tenant"),
        ({"auth": {"baerer": {}}}, "auth.baerer: unknown key; the nearest valid one is bearer"),
        ({"auth": {"bearer": {"enf": "A"}}}, "the nearest valid one is env"),
        ({"secret_headers": {"X-A": {"fil": "A"}}}, "X-A.fil: unknown key; the nearest"),
        ({"auth": {"bearer": {"env": "A", "file": "b"}}}, "one of the two"),
        ({"auth": {"bearer": {}}}, "needs env, the name of a variable, or file"),
        ({"auth": {"bearer": {"env": "A"}, "basic": {"user": "u", "password": {"env": "B"}}}},
         "bearer and basic exclude each other"),
        ({"auth": {"tls": {"key": "k"}}}, "certificate and key are needed together"),
        ({"url": None}, "needs url or path, one of the two"),
        ({"path": "p"}, "needs url or path, one of the two"),
        ({"url": "p:9090"}, "url must begin with http:// or https://"),
        ({"url": "http://p/?x=1"}, "url ends in a query"),
        ({"url": "http://p:x"}, "url is none"),
        ({"headers": {"Authorization": "x"}}, "Authorization is set by auth"),
        ({"headers": {"x-scope-orgid": "x"}}, "x-scope-orgid is set by tenant"),
        ({"headers": {"A b": "x"}}, "a name that no header can have"),
        ({"headers": {"A": "x\r\nB: y"}}, "A holds signs that no header can hold"),
        ({"tenant": "ü"}, "tenant holds signs"),
        ({"concurrency": 0}, "sources[0].concurrency: input should be greater than or equal to 1"),
        ({"timeout_seconds": 0}, "sources[0].timeout_seconds"),
    ],
)  # fmt: skip
def test_a_fault_of_the_source_is_told_with_its_key_and_the_nearest_one(keys, words):
    assert words in faults(**keys)


@pytest.mark.parametrize(
    "keys",
    [
        {"url": f"http://me:{SECRET}@p"},
        {"auth": {"bearer": SECRET}},
        {"auth": {"bearer": {"env": SECRET}}},
        {"auth": {"bearer": {"token": SECRET}}},
        {"auth": {"basic": {"user": "me", "password": SECRET}}},
        {"auth": {"basic": f"me:{SECRET}"}},
        {"auth": SECRET},
        {"secret_headers": {"X-Key": SECRET}},
        {"secret_headers": SECRET},
        {"headers": {"Authorization": f"Bearer {SECRET}"}},
        {"headers": {"X": f"{SECRET}\n"}},
        {"headers": [SECRET]},
        {"auth": {"tls": SECRET}},
    ],
)
def test_a_secret_written_where_none_belongs_is_not_repeated(keys):
    assert SECRET not in faults(**keys)


def test_paths_count_from_the_folder_of_the_configuration(tmp_path):
    told = {"kind": "prometheus", "path": "answers", "observed_at": "2026-01-01T00:00Z"}
    told |= {"auth": {"bearer": {"file": "token"}}}
    found = PrometheusSource.model_validate(told, context={"folder": tmp_path})
    assert found.path == tmp_path / "answers"
    assert found.observed_at == datetime(2026, 1, 1, tzinfo=UTC)
    assert found.auth.bearer
    assert found.auth.bearer.file == tmp_path / "token"
