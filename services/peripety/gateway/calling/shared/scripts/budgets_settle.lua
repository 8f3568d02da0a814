-- Accounts for a call that has ended.
-- ARGV: number, then calls, tokens and cost that it used.
for index = 1, #KEYS / 3 do
  finish(budget(index), ARGV[1], {ARGV[2], ARGV[3], ARGV[4]})
end
return 1
