-- Sixteen million addresses to come from.

local floor = math.floor

function address(sequence)
  return string.format("11.%d.%d.%d", floor(sequence / 65536) % 256, floor(sequence / 256) % 256, sequence % 256)
end
