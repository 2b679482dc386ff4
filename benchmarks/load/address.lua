-- Sixteen million addresses to come from, each next one in another network.

local floor = math.floor

function address(sequence)
  return string.format("11.%d.%d.%d", sequence % 256, floor(sequence / 256) % 256, floor(sequence / 65536) % 256)
end
