-- Hold one unit after another, each once, in scattered order, each from an address of its own.
-- Arguments: path prefix, number of the first unit, how many units follow it.

local folder = string.match(debug.getinfo(1, "S").source, "@(.*/)")
dofile(folder .. "address.lua")
dofile(folder .. "done.lua")

-- A prime that divides no number of units here, so that every unit comes once before one comes again.
local STRIDE = 7919
local prefix, first, count, tail
local sequence = 0

function init(args)
  prefix, first, count = args[1], tonumber(args[2]), tonumber(args[3])
  tail = "/hold HTTP/1.1\r\nHost: " .. wrk.host .. "\r\nContent-Length: 0\r\nX-Forwarded-For: "
end

function request()
  sequence = sequence + 1
  local number = first + sequence * STRIDE % count
  return "POST " .. prefix .. number .. tail .. address(sequence) .. "\r\n\r\n"
end
