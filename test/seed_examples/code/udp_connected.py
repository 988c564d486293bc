#: guides: 000, 001
#: adds: import asyncio
#: adds: loop = asyncio.get_running_loop()
#: adds: class MyProtocol(asyncio.DatagramProtocol): pass
#: replaces: 127.0.0.1 -> HOST
#: replaces: 9999 -> PORT

# Client connected to specific server
transport, protocol = await loop.create_datagram_endpoint(
    MyProtocol,
    remote_addr=('127.0.0.1', 9999)
)
# Can use sendto without address
transport.sendto(b'Hello')  # Goes to connected address
