"""An HTTP server with manners: told to end, it takes no new connections, answers what is asked on open ones and says that it closes
them, and ends when none is left."""
import asyncio, os, signal, sys

ending = asyncio.Event()
open_connections = set()


async def serve(reader, writer):
    open_connections.add(writer)
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            last = ending.is_set() or b"connection: close" in head.lower()
            body = os.uname().nodename.encode() + b"\n"
            close = b"Connection: close\r\n" if last else b""
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n%s\r\n%s" % (len(body), close, body))
            await writer.drain()
            if last:
                break
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        open_connections.discard(writer)
        writer.close()


async def main():
    server = await asyncio.start_server(serve, "0.0.0.0", int(sys.argv[1]))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ending.set)
    await ending.wait()
    server.close()
    for _ in range(100):
        if not open_connections:
            break
        await asyncio.sleep(0.1)


asyncio.run(main())
