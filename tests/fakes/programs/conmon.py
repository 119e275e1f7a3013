"""The process that stays with a cluster: holds its ports and answers as its API."""

import os

from programs.state import STATE, listing

# Not conmon: a ksi-gc of somebody else on this machine looks for the owners of such processes.
TITLE = "fake-conmon"


def listen(address, port):
    import socket

    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((address, port))
    listener.listen(16)
    return listener


def conmon(api, port):
    """Leave the process that holds the cluster's ports and answers as its API, in a session of its own."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        with open("/proc/self/comm", "w") as comm:
            comm.write(TITLE)
        os.write(writer, str(os.getpid()).encode())
        nowhere = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nowhere, descriptor)
        os.close(reader)
        os.close(writer)
        serve(api, port)
    os.wait()
    os.close(writer)
    return int(os.read(reader, 20))


def serve(api, _port):
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.path.join(STATE, "server.pem"))
    while True:
        connection, _ = api.accept()
        connection.settimeout(5)
        try:
            with context.wrap_socket(connection, server_side=True) as secure:
                request = secure.recv(16384).decode("latin-1")
                token = request.partition("Bearer ")[2].split("\r\n")[0]
                known = [made["token"] for made in listing("token")]
                answer = "200 OK" if token in known else "401 Unauthorized"
                headers = "Content-Length: 2\r\nConnection: close"
                secure.sendall(f"HTTP/1.1 {answer}\r\n{headers}\r\n\r\n{{}}".encode())
        except OSError:
            continue
