-- Reserves an amount in all budgets and returns {}. Else returns the index of the first budget without room, from 0,
-- and the usage of each budget, or nothing for one that is not open.
-- ARGV: number, lease, calls, tokens and cost, then three caps for each budget (-1 for no cap).
local lease = tonumber(ARGV[2])
local short, used = nil, {}

local function fits(each, index)
  local taken = {tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])}
  for _, text in ipairs(redis.call('HVALS', each.holds)) do
    for i, amount in ipairs(read_hold(text)) do taken[i] = taken[i] + amount end
  end
  for i, kind in ipairs(KINDS) do
    local cap = tonumber(ARGV[5 + 3 * (index - 1) + i])
    if cap >= 0 and redis.call('HGET', each.used, kind) + taken[i] > cap then return false end
  end
  return true
end

for index = 1, #KEYS / 3 do
  local each = budget(index)
  for _, number in ipairs(redis.call('ZRANGEBYSCORE', each.leases, '-inf', now)) do
    finish(each, number)  -- an expired lease: its owner is gone, and may have used all of it
  end
  local open = redis.call('EXISTS', each.used) == 1
  used[index] = open and redis.call('HMGET', each.used, unpack(KINDS)) or {}
  if not short and not (open and fits(each, index)) then short = index - 1 end
end
if short then return {short, unpack(used)} end

for index = 1, #KEYS / 3 do
  local each = budget(index)
  redis.call('ZADD', each.leases, now + lease, ARGV[1])
  redis.call('HSET', each.holds, ARGV[1], ARGV[3] .. ' ' .. ARGV[4] .. ' ' .. ARGV[5])
  for _, key in pairs(each) do redis.call('PEXPIRE', key, WEEK) end
end
return {}
