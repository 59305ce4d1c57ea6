# SPDX-License-Identifier: Apache-2.0
"""Requests that a proxy must refuse, by kind. AUTH stands for host:port of the server, HOST and
PORT for its parts. Each differs in one thing from CONTROL or CONTROL_CHUNKED, which are taken."""

HEAD = b"GET http://AUTH/ HTTP/1.1\r\nHost: AUTH\r\n"
POST = b"POST http://AUTH/ HTTP/1.1\r\nHost: AUTH\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
CONNECT = b"CONNECT AUTH HTTP/1.1\r\nHost: AUTH\r\n"

CONTROL = POST + b"Content-Length: 5\r\n\r\nhello"
CONTROL_CHUNKED = CHUNKED + b"5\r\nhello\r\n0\r\n\r\n"

MALFORMED = {
    "length conflict": [
        POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        POST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        POST + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
        POST + b"Content-Length: 5, 5\r\n\r\nhello",
        POST + b"Content-Length: +5\r\n\r\nhello",
        POST + b"Content-Length: +0\r\n\r\n",
        POST + b"Content-Length: 05\r\n\r\nhello",
        POST + b"Content-Length: 0x5\r\n\r\nhello",
        POST + b"Content-Length: 5.0\r\n\r\nhello",
        POST + b"Content-Length: 18446744073709551621\r\n\r\nhello",
        POST + b"Content_Length: 5\r\n\r\nhello",
        POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        b"POST http://AUTH/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ],
    "chunk": [CHUNKED + x for x in (
        b"0x5\r\nhello\r\n0\r\n\r\n", b"+5\r\nhello\r\n0\r\n\r\n", b"-5\r\nhello\r\n0\r\n\r\n",
        b" 5\r\nhello\r\n0\r\n\r\n", b"5 \r\nhello\r\n0\r\n\r\n", b"5;a=b\r\nhello\r\n0\r\n\r\n",
        b"5;a=\n\r\nhello\r\n0\r\n\r\n", b"5\nhello\n0\n\n", b"5\r\nhelloX\r\n0\r\n\r\n",
        b"5\r\nhello0\r\n\r\n", b"\r\n5\r\nhello\r\n0\r\n\r\n", b"5\r\nhello\r\n0\r\nX: 1\r\n\r\n",
        b"5\r\nhello\r\n0\r\n \r\n", b"5\rhello\r0\r\r", b"FFFFFFFFFFFFFFFF1\r\nhello\r\n0\r\n\r\n",
        b"5\r\nhello\r\n0\n\r\n", b"z\r\n\r\n")],
    "folding": [
        HEAD + b" X: 1\r\n\r\n", HEAD + b"\tX: 1\r\n\r\n", HEAD + b"X: 1\r\n 2\r\n\r\n",
        HEAD + b"X: 1\r\n\t\r\n\r\n", HEAD + b"X : 1\r\n\r\n", HEAD + b"X\t: 1\r\n\r\n",
        b"GET http://AUTH/ HTTP/1.1\r\n Host: AUTH\r\n\r\n",
    ],
    "bare CR or LF": [
        b"GET http://AUTH/ HTTP/1.1\nHost: AUTH\n\n", HEAD + b"X: 1\n\r\n", HEAD + b"\n",
        HEAD + b"X: 1\rY: 2\r\n\r\n", HEAD + b"X: 1\r\r\n\r\n", HEAD + b"X: 1\n\nGET / HTTP/1.1\r\n\r\n",
        b"GET http://AUTH/\rHost: AUTH\r\n\r\n", b"\r\n" + HEAD + b"\r\n", b"\n" + HEAD + b"\r\n",
    ],
    "doubled Host": [
        HEAD + b"Host: AUTH\r\n\r\n", HEAD + b"host: evil.test\r\n\r\n",
        b"GET http://AUTH/ HTTP/1.1\r\nHost: AUTH, evil.test\r\n\r\n",
        b"GET http://AUTH/ HTTP/1.1\r\n\r\n", b"GET http://AUTH/ HTTP/1.1\r\nHost:\r\n\r\n",
        b"GET http://AUTH/ HTTP/1.1\r\nHost: AUTH evil.test\r\n\r\n",
    ],
    "absolute-form mismatch": [
        b"GET http://AUTH/ HTTP/1.1\r\nHost: evil.test\r\n\r\n",
        b"GET http://AUTH/ HTTP/1.1\r\nHost: HOST:1\r\n\r\n",
        b"GET http://AUTH/ HTTP/1.1\r\nHost: HOST\r\n\r\n",
        b"GET http://AUTH/ HTTP/1.1\r\nHost: x@AUTH\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: AUTH\r\n\r\n", b"GET //AUTH/ HTTP/1.1\r\nHost: AUTH\r\n\r\n",
        b"GET https://AUTH/ HTTP/1.1\r\nHost: AUTH\r\n\r\n",
        b"GET http://x@AUTH/ HTTP/1.1\r\nHost: AUTH\r\n\r\n",
        b"GET http://AUTH\\@evil.test/ HTTP/1.1\r\nHost: AUTH\r\n\r\n",
        b"GET http://AUTH#@evil.test/ HTTP/1.1\r\nHost: AUTH\r\n\r\n",
        b"GET  http://AUTH/ HTTP/1.1\r\nHost: AUTH\r\n\r\n",
        b"GET http://AUTH/ HTTP/1.1 \r\nHost: AUTH\r\n\r\n",
        b"GET http://AUTH/ HTTP/1.3\r\nHost: AUTH\r\n\r\n",
        b"GET http://AUTH/\r\n\r\n",
    ],
    "upgrade": [
        HEAD + b"Upgrade: websocket\r\n\r\n", HEAD + b"Connection: upgrade\r\n\r\n",
        HEAD + b"Connection: upgrade\r\nUpgrade: a,,b\r\n\r\n",
        HEAD + b"Connection: upgrade\r\nUpgrade: a b\r\n\r\n",
        POST + b"Connection: upgrade\r\nUpgrade: h2c\r\nContent-Length: 5\r\n\r\nhello",
        HEAD + b"Connection: upgrade\r\nUpgrade: h2c\r\nUpgrade: websocket\r\n\r\n",
        HEAD + b"Connection: host\r\n\r\n", HEAD + b"Connection: transfer-encoding\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
    "CONNECT target": [
        b"CONNECT HOST HTTP/1.1\r\nHost: HOST\r\n\r\n", b"CONNECT http://AUTH HTTP/1.1\r\nHost: AUTH\r\n\r\n",
        b"CONNECT AUTH/ HTTP/1.1\r\nHost: AUTH\r\n\r\n", b"CONNECT x@AUTH HTTP/1.1\r\nHost: AUTH\r\n\r\n",
        b"CONNECT HOST:0PORT HTTP/1.1\r\nHost: AUTH\r\n\r\n", b"CONNECT HOST:0 HTTP/1.1\r\nHost: HOST:0\r\n\r\n",
        b"CONNECT HOST:65536 HTTP/1.1\r\nHost: HOST:65536\r\n\r\n", b"CONNECT AUTH:1 HTTP/1.1\r\nHost: AUTH\r\n\r\n",
        b"CONNECT AUTH HTTP/1.1\r\nHost: evil.test\r\n\r\n", CONNECT + b"Content-Length: 5\r\n\r\nhello",
        CONNECT + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", CONNECT + b"\r\nGET / HTTP/1.1\r\n\r\n",
        b"CONNECT  AUTH HTTP/1.1\r\nHost: AUTH\r\n\r\n", b"connect AUTH HTTP/1.1\r\nHost: AUTH\r\n\r\n",
    ],
    "header size": [
        HEAD + b"X: 1\r\n" * 200 + b"\r\n", HEAD + b"X: " + b"y" * 70000 + b"\r\n\r\n",
        HEAD + b"X" * 70000 + b": 1\r\n\r\n", b"GET http://AUTH/" + b"y" * 20000 + b" HTTP/1.1\r\nHost: AUTH\r\n\r\n",
        HEAD + (b"X: " + b"y" * 1000 + b"\r\n") * 70 + b"\r\n", b"G" * 70000,
    ],
    "NUL and 8-bit": [
        HEAD + b"X: \0\r\n\r\n", HEAD + b"X\0: 1\r\n\r\n", b"GET http://AUTH/\0 HTTP/1.1\r\nHost: AUTH\r\n\r\n",
        b"GET http://AUTH\0.evil.test/ HTTP/1.1\r\nHost: AUTH\r\n\r\n", HEAD + b"X\xe9: 1\r\n\r\n",
        b"GET http://AUTH/\xe9 HTTP/1.1\r\nHost: AUTH\r\n\r\n", HEAD + b"X: \x01\r\n\r\n", HEAD + b"X: \x7f\r\n\r\n",
        HEAD + b": 1\r\n\r\n", HEAD + b"X\r\n\r\n", b"\x16\x03\x01\x00\xa5\x01", b"\x05\x01\x00", b"G\xc3\x89T / HTTP/1.1\r\n\r\n",
    ],
}


def filled(request, host, port):
    """With the server's name and port."""
    return (request.replace(b"AUTH", f"{host}:{port}".encode()).replace(b"HOST", host.encode())
            .replace(b"PORT", str(port).encode()))
