-- Settles a finished call, unless its lease has expired: its whole reservation was then counted as used.
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
