-- Sets an amount aside in all budgets: {}. Else the place of the first budget that lacks it, from 0, and for each
-- of them what was used, or nothing if it is not open.
-- ARGV: number, lease, calls, tokens and cost, then three caps for each budget (-1 is none).
local lease = tonumber(ARGV[2])
local short, used = nil, {}

local function fits(each, index)
  for i, kind in ipairs(KINDS) do
    local cap = tonumber(ARGV[5 + 3 * (index - 1) + i])
    local taken = redis.call('HMGET', each.account, kind, 'held_' .. kind)
    if cap >= 0 and tonumber(taken[1]) + tonumber(taken[2]) + tonumber(ARGV[2 + i]) > cap then return false end
  end
  return true
end

for index = 1, #KEYS / 3 do
  local each = budget(index)
  for _, number in ipairs(redis.call('ZRANGEBYSCORE', each.leases, '-inf', now)) do
    finish(each, number)  -- who does not renew a lease is gone, and may have used all of it
  end
  local open = redis.call('EXISTS', each.account) == 1
  used[index] = open and redis.call('HMGET', each.account, unpack(KINDS)) or {}
  if not short and not (open and fits(each, index)) then short = index - 1 end
end
if short then return {short, unpack(used)} end

for index = 1, #KEYS / 3 do
  local each = budget(index)
  redis.call('ZADD', each.leases, now + lease, ARGV[1])
  redis.call('HSET', each.holds, ARGV[1], ARGV[3] .. ' ' .. ARGV[4] .. ' ' .. ARGV[5])
  for i, kind in ipairs(KINDS) do redis.call('HINCRBY', each.account, 'held_' .. kind, ARGV[2 + i]) end
  for _, key in pairs(each) do redis.call('PEXPIRE', key, WEEK) end
end
return {}
