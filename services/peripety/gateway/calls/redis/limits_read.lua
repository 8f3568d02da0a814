-- Returns the use of the last minute, with the reservations of calls in progress: requests, input, output, cost, calls.
forget_the_dead()
local held_output, held_cost = 0, 0
for _, text in ipairs(redis.call('HVALS', holds)) do
  local hold = read_hold(text)
  held_output, held_cost = held_output + hold.output, held_cost + hold.cost
end
local totals = {}
for i, window in ipairs({'requests', 'input', 'output', 'cost'}) do
  local _, total = counting(window)
  totals[i] = total
end
return {totals[1], totals[2], totals[3] + held_output, totals[4] + held_cost, redis.call('ZCARD', leases)}
