-- PUT over existing units: every request changes the price, one in five the status too.
-- Arguments: path prefix, key, number of units, first sequence number, body with <PRICE> <CODE> <STATUS>, and
-- perhaps "ids": then every request has an X-Request-Id of its own.

dofile(string.match(debug.getinfo(1, "S").source, "@(.*/)") .. "done.lua")

local prefix, key, count, sequence, head, has_ids
local before_price, before_code, before_status, after_status
local unavailable = {}

local function split(text, mark)
  local from, to = string.find(text, mark, 1, true)
  return string.sub(text, 1, from - 1), string.sub(text, to + 1)
end

function init(args)
  prefix, key, count, sequence = args[1], args[2], tonumber(args[3]), tonumber(args[4])
  local rest
  before_price, rest = split(args[5], "<PRICE>")
  before_code, rest = split(rest, "<CODE>")
  before_status, after_status = split(rest, "<STATUS>")
  math.randomseed(sequence)
  has_ids = args[6] == "ids"
  head = " HTTP/1.1\r\nHost: " .. wrk.host .. "\r\nAuthorization: Bearer " .. key
    .. "\r\nContent-Type: application/json\r\nContent-Length: "
end

local function status_change(number)
  if sequence % 5 ~= 0 then return "" end
  unavailable[number] = not unavailable[number]
  return unavailable[number] and ',"status":"unavailable"' or ',"status":"available"'
end

function request()
  sequence = sequence + 1
  local number = math.random(count)
  local code = "A-" .. number
  local body = before_price .. (400000 + sequence % 900000) .. ".50" .. before_code .. code
    .. before_status .. status_change(number) .. after_status
  local id = has_ids and "\r\nX-Request-Id: request-" .. sequence or ""
  return "PUT " .. prefix .. code .. head .. #body .. id .. "\r\n\r\n" .. body
end
