-- Accounts for a call that has ended, unless its lease ran out before: then it has counted for all it might use.
-- ARGV: number, whether a request was sent, then input, output and cost of the call.
local hold = take(ARGV[1])
if not hold then return 0 end
if ARGV[2] == '0' then
  add('requests', hold.moment, -1)
  add('input', hold.moment, 0 - hold.input)
else
  add('input', hold.moment, tonumber(ARGV[3]) - hold.input)
  add('output', now, ARGV[4])
  add('cost', now, ARGV[5])
end
return 1
