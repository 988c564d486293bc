#: guides: 000, 001
#: adds: import asyncio
#: adds: loop = asyncio.get_running_loop()
#: adds: class MyProtocol(asyncio.DatagramProtocol): pass
#: replaces: 0.0.0.0 -> HOST
#: replaces: 255.255.255.255 -> 127.255.255.255
#: replaces: 9999 -> PORT

transport, protocol = await loop.create_datagram_endpoint(
    MyProtocol,
    local_addr=('0.0.0.0', 0),
    allow_broadcast=True
)
# Send to broadcast address
transport.sendto(b'Broadcast message', ('255.255.255.255', 9999))
