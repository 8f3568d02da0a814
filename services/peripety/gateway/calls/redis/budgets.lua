-- Shared code of the budget scripts. Any key may be missing: the server may evict it.
-- KEYS: three for each budget: its usage, leases of calls in progress, their reservations.
local WEEK = 7 * 24 * 3600 * 1000
local KINDS = {'calls', 'tokens', 'cost'}

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)

local function budget(index)
  return {used = KEYS[3 * index - 2], leases = KEYS[3 * index - 1], holds = KEYS[3 * index]}
end

local function read_hold(text)
  return {string.match(text, '(%d+) (%d+) (%d+)')}
end

-- Ends a hold, and counts the given usage, or the whole reservation. No effect on a hold that has ended.
local function finish(each, number, amounts)
  local text = redis.call('HGET', each.holds, number)
  local alive = redis.call('HDEL', each.holds, number) + redis.call('ZREM', each.leases, number) > 0
  amounts = amounts or (text and read_hold(text))
  if not alive or not amounts or redis.call('EXISTS', each.used) == 0 then return end
  for i, kind in ipairs(KINDS) do redis.call('HINCRBY', each.used, kind, amounts[i]) end
end
