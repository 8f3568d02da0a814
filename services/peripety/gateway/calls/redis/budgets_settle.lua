-- Settles a finished call.
-- ARGV: number, then its calls, tokens and cost.
for index = 1, #KEYS / 3 do
  finish(budget(index), ARGV[1], {ARGV[2], ARGV[3], ARGV[4]})
end
return 1
