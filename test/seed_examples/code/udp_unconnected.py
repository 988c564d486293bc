#: guides: 000, 001
#: adds: import asyncio
#: adds: loop = asyncio.get_running_loop()
#: adds: class MyProtocol(asyncio.DatagramProtocol): pass
#: replaces: 0.0.0.0 -> HOST
#: replaces: 9999 -> PORT
#: replaces: 192.168.1.100 -> PEER_1
#: replaces: 192.168.1.101 -> PEER_2
#: replaces: 5000 -> PEER_PORT

# Server can send to any client
transport, protocol = await loop.create_datagram_endpoint(
    MyProtocol,
    local_addr=('0.0.0.0', 9999)
)
# Send to different destinations
transport.sendto(b'Hello', ('192.168.1.100', 5000))
transport.sendto(b'World', ('192.168.1.101', 5000))
