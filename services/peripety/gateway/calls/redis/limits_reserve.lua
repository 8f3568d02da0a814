-- Admits a call and returns 0. Else returns the milliseconds to wait, or -1 if a call in progress must end first.
-- ARGV: number, lease, concurrency, four limits (-1 for no limit), then input, output and cost of the call.
local lease, concurrency = tonumber(ARGV[2]), tonumber(ARGV[3])
local input, output, cost = tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10])

local function wait(window, limit, amount)
  if limit < 0 then return 0 end
  local slots, total = counting(window)
  local excess = total + amount - limit
  if excess <= 0 then return 0 end
  for _, slot in ipairs(slots) do
    excess = excess - slot[2]
    if excess <= 0 then return ends(slot[1]) - now end
  end
  return -1
end

forget_the_dead()
if concurrency >= 0 and redis.call('ZCARD', leases) >= concurrency then return -1 end
local held_output, held_cost = 0, 0
for _, text in ipairs(redis.call('HVALS', holds)) do
  local hold = read_hold(text)
  held_output, held_cost = held_output + hold.output, held_cost + hold.cost
end
local waits = {
  wait('requests', tonumber(ARGV[4]), 1),
  wait('input', tonumber(ARGV[5]), input),
  wait('output', tonumber(ARGV[6]), held_output + output),
  wait('cost', tonumber(ARGV[7]), held_cost + cost),
}
local longest = 0
for _, milliseconds in ipairs(waits) do
  if milliseconds < 0 then return -1 end
  longest = math.max(longest, milliseconds)
end
if longest > 0 then return longest end

redis.call('ZADD', leases, now + lease, ARGV[1])
redis.call('HSET', holds, ARGV[1], string.format('%.0f', now) .. ' ' .. ARGV[8] .. ' ' .. ARGV[9] .. ' ' .. ARGV[10])
for _, key in ipairs({leases, holds}) do redis.call('PEXPIRE', key, lease + 2 * MINUTE) end
add('requests', now, 1)
add('input', now, input)
return 0
