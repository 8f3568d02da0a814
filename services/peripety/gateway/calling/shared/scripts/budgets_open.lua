-- Begins to keep account of a budget, unless somebody has begun.
-- ARGV: calls, tokens and cost that were used before.
local each = budget(1)
if redis.call('EXISTS', each.used) == 0 then
  for i, kind in ipairs(KINDS) do redis.call('HSET', each.used, kind, ARGV[i]) end
  redis.call('PEXPIRE', each.used, WEEK)
end
return 1
