using System;
using System.Collections.Concurrent;
using System.Collections.Generic;
using System.Diagnostics;
using System.Text;

namespace Peripety
{
    /// <summary>
    /// Client of the HTTP interface for game loops. Calls return at once. Their callbacks run within <see cref="Poll"/>,
    /// on the thread of your game. Every method belongs to that thread.
    /// </summary>
    public sealed class Client : IDisposable
    {
        private readonly string url;
        private readonly Dictionary<string, string> headers = new Dictionary<string, string>();
        private readonly ConcurrentQueue<Action> queue = new ConcurrentQueue<Action>();
        private readonly List<Exchange> exchanges = new List<Exchange>();
        private readonly List<KeyValuePair<double, Exchange>> waiting = new List<KeyValuePair<double, Exchange>>();
        private readonly Stopwatch clock = Stopwatch.StartNew();

        /// <summary>Creates a client. It connects at the first call.</summary>
        /// <param name="url">Address of the HTTP interface.</param>
        /// <param name="token">Bearer token; empty for none.</param>
        /// <param name="transport">It sends the requests; null is <see cref="HttpTransport"/>.</param>
        /// <exception cref="ArgumentException">
        /// The address is not absolute, or a token would be sent as plaintext to another machine.
        /// </exception>
        public Client(string url = "http://127.0.0.1:50080", string token = "", ITransport transport = null)
        {
            Uri address;
            if (!Uri.TryCreate(url, UriKind.Absolute, out address) || !address.Scheme.StartsWith("http", StringComparison.Ordinal))
            {
                throw new ArgumentException("url: not an HTTP address: " + url + "; use one such as http://127.0.0.1:50080");
            }
            if (token.Length > 0 && address.Scheme != "https" && !address.IsLoopback)
            {
                throw new ArgumentException("token: it would be sent as plaintext to " + address.Host + "; use https");
            }
            if (token.Length > 0)
            {
                headers.Add("authorization", "Bearer " + token);
            }
            this.url = url.TrimEnd('/');
            Transport = transport ?? new HttpTransport();
        }

        /// <summary>Receives the errors of calls without a handler of their own. Without it, Poll throws them.</summary>
        public event Action<CallException> Failed;

        internal ITransport Transport { get; private set; }

        internal double Now
        {
            get { return clock.Elapsed.TotalSeconds; }
        }

        /// <summary>Runs the callbacks that are due. Call it once a frame.</summary>
        /// <exception cref="CallException">A call without a handler has failed.</exception>
        public void Poll()
        {
            Action next;
            while (queue.TryDequeue(out next))
            {
                next();
            }
            for (int index = waiting.Count - 1; index >= 0; index--)
            {
                if (waiting[index].Key <= Now)
                {
                    Exchange due = waiting[index].Value;
                    waiting.RemoveAt(index);
                    due.Start();
                }
            }
            foreach (Exchange open in exchanges.ToArray())
            {
                open.CheckSilence();
            }
        }

        /// <summary>Ends every call without a callback. The server continues the turns that it has received.</summary>
        public void Dispose()
        {
            foreach (Exchange open in exchanges)
            {
                open.Stop();
            }
            exchanges.Clear();
            waiting.Clear();
        }

        /// <summary>Reads a document of the HTTP interface, such as <c>/sessions/ID/story</c>.</summary>
        public void Get(string path, Action<Json> done, Action<CallException> failed = null)
        {
            Begin("GET", path, null, done, null, failed);
        }

        /// <summary>
        /// Sends a document, such as <c>/rpc/SessionService/ForkSession</c>. If the request has a <c>request_id</c>, set
        /// it: the client repeats a request whose answer was lost.
        /// </summary>
        public void Post(string path, Json body, Action<Json> done, Action<CallException> failed = null)
        {
            Begin("POST", path, body, done, null, failed);
        }

        /// <summary>Validates and stores a specification. The callback receives the id of the scenario.</summary>
        /// <exception cref="FormatException">The specification is not JSON.</exception>
        public void Compile(string spec, Action<string> done, Action<CallException> failed = null)
        {
            Json document = Json.Parse(spec);
            string id = Uri.EscapeDataString(document["id"].Text);
            Post("/scenarios/" + id + "/compile", document, answer => done(answer["scenario_id"].Text), failed);
        }

        /// <summary>Starts a session. The seed determines every random event; null is that of the specification.</summary>
        public void Create(string scenarioId, long? seed, Action<Session> done, Action<CallException> failed = null, string pov = "")
        {
            Json body = Json.Object("scenario_id", scenarioId, "seed", seed.HasValue ? seed.Value : Json.Null, "pov", pov);
            Post("/sessions", body, answer => done(new Session(answer)), failed);
        }

        /// <summary>Opens a session, for example after a restart of the game.</summary>
        public void Open(string sessionId, Action<Session> done, Action<CallException> failed = null, string pov = "")
        {
            string path = "/sessions/" + Uri.EscapeDataString(sessionId) + "?pov=" + Uri.EscapeDataString(pov);
            Get(path, answer => done(new Session(answer)), failed);
        }

        /// <summary>
        /// Plays the next turn of a session. Each event arrives once, also over a lost connection. The session is updated
        /// before <paramref name="done"/> is called.
        /// </summary>
        /// <param name="session">The session.</param>
        /// <param name="turn">The turn; see <see cref="Turn"/>.</param>
        /// <param name="onEvent">Called with each event as it arrives.</param>
        /// <param name="done">Called after the last event.</param>
        /// <param name="failed">Called if nothing was applied.</param>
        public void Play(
            Session session, Json turn, Action<TurnEvent> onEvent, Action done = null, Action<CallException> failed = null)
        {
            Json body = Json.Object(
                "request_id", Guid.NewGuid().ToString(),
                "expected_turn", session.Turn + 1,
                "pov", session.Pov,
                "input", turn["input"].Text,
                "actions", turn["actions"],
                "seat_id", turn["seat_id"].Text);
            Action<TurnEvent> receive = one =>
            {
                if (one.Name == "diff")
                {
                    session.Commit(one);
                }
                onEvent(one);
            };
            Action<Json> end = answer =>
            {
                if (done != null)
                {
                    done();
                }
            };
            Begin("POST", "/sessions/" + Uri.EscapeDataString(session.Id) + "/turns", body, end, receive, failed);
        }

        /// <summary>Returns a turn with one action: <c>Client.Turn("rest", "I sleep.", "hours", 2)</c>.</summary>
        /// <param name="actionId">Id of the action; empty for a turn of free text alone.</param>
        /// <param name="input">Free text of the player.</param>
        /// <param name="parameters">Names and values of the parameters in turns.</param>
        public static Json Turn(string actionId, string input = "", params Json[] parameters)
        {
            Json actions = actionId.Length == 0
                ? Json.Array()
                : Json.Array(Json.Object("action_id", actionId, "params", Json.Object(parameters)));
            return Json.Object("actions", actions, "input", input);
        }

        internal void Enqueue(Action action)
        {
            queue.Enqueue(action);
        }

        internal void After(double seconds, Exchange exchange)
        {
            waiting.Add(new KeyValuePair<double, Exchange>(Now + seconds, exchange));
        }

        internal void Remove(Exchange exchange)
        {
            exchanges.Remove(exchange);
        }

        private void Begin(
            string method, string path, Json body, Action<Json> done, Action<TurnEvent> onEvent, Action<CallException> failed)
        {
            var all = new Dictionary<string, string>(headers);
            all.Add("accept", onEvent == null ? "application/json" : "text/event-stream");
            if (method == "POST")
            {
                all.Add("idempotency-key", Guid.NewGuid().ToString());
            }
            byte[] bytes = body == null ? null : Encoding.UTF8.GetBytes(body.ToString());
            var request = new WireRequest(method, url + path, bytes, all);
            var exchange = new Exchange(this, request, done, onEvent, failed ?? Report);
            exchanges.Add(exchange);
            exchange.Start();
        }

        private void Report(CallException error)
        {
            if (Failed == null)
            {
                throw error;
            }
            Failed(error);
        }
    }
}
