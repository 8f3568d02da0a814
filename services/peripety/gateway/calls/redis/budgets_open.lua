-- Opens a budget, unless it is open.
-- ARGV: calls, tokens and cost used so far.
local each = budget(1)
if redis.call('EXISTS', each.used) == 0 then
  for i, kind in ipairs(KINDS) do redis.call('HSET', each.used, kind, ARGV[i]) end
  redis.call('PEXPIRE', each.used, WEEK)
end
return 1
