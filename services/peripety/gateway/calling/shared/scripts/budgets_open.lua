-- Begins to keep account of a budget, unless somebody has begun.
-- ARGV: calls, tokens and cost that were used before.
local each = budget(1)
if redis.call('EXISTS', each.account) == 0 then
  for i, kind in ipairs(KINDS) do
    redis.call('HSET', each.account, kind, ARGV[i], 'held_' .. kind, 0)
  end
  redis.call('PEXPIRE', each.account, WEEK)
end
return 1
