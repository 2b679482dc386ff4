-- The same request again and again, each from an address of its own.
-- Arguments: method, path.

local folder = string.match(debug.getinfo(1, "S").source, "@(.*/)")
dofile(folder .. "address.lua")
dofile(folder .. "done.lua")

local head
local sequence = 0

function init(args)
  head = args[1] .. " " .. args[2] .. " HTTP/1.1\r\nHost: " .. wrk.host
    .. "\r\nContent-Length: 0\r\nX-Forwarded-For: "
end

function request()
  sequence = sequence + 1
  return head .. address(sequence) .. "\r\n\r\n"
end
