-- Counts words.
local Counter = {}
Counter.__index = Counter

--[[ A longer comment
over lines. ]]
function Counter.new(limit)
  return setmetatable({ limit = limit or 0x10, counts = {} }, Counter)
end

function Counter:add(text)
  for word in text:gmatch("%S+") do
    if word ~= '' and not self.counts[word] then
      self.counts[word] = 0
    end
    self.counts[word] = self.counts[word] + 1
  end
end

local text = [[a long
text -- no comment]]
local counter = Counter.new()
counter:add(text .. "it's \"quoted\"")
for word, count in pairs(counter.counts) do
  print(word, count, 1.5, nil, true)
end
return counter
