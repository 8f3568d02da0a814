-- What the scripts of budgets have in common.
-- KEYS: three for each budget: what is used and held of it, leases of calls under way, what they set aside.
local WEEK = 7 * 24 * 3600 * 1000
local KINDS = {'calls', 'tokens', 'cost'}

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)

local function budget(index)
  return {account = KEYS[3 * index - 2], leases = KEYS[3 * index - 1], holds = KEYS[3 * index]}
end

-- Ends a hold, and counts as used what is given, or all of it. Nothing happens to one that has ended before.
local function finish(each, number, used)
  local text = redis.call('HGET', each.holds, number)
  if not text then return end
  redis.call('HDEL', each.holds, number)
  redis.call('ZREM', each.leases, number)
  local held = {string.match(text, '(%d+) (%d+) (%d+)')}
  for i, kind in ipairs(KINDS) do
    redis.call('HINCRBY', each.account, 'held_' .. kind, 0 - held[i])
    redis.call('HINCRBY', each.account, kind, (used or held)[i])
  end
end
