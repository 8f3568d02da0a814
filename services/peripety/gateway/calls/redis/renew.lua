-- Renews leases that have not expired.
-- ARGV: lease, then the numbers. A hold expires with its lease.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
for i = 2, #ARGV do
  redis.call('ZADD', KEYS[1], 'XX', now + tonumber(ARGV[1]), ARGV[i])
end
for _, key in ipairs(KEYS) do
  if redis.call('PTTL', key) < tonumber(ARGV[1]) * 2 then redis.call('PEXPIRE', key, tonumber(ARGV[1]) * 2) end
end
return 1
