using System;
using System.Collections.Generic;
using System.IO;
using System.Text;

namespace Peripety
{
    /// <summary>
    /// One call, repeated until it has an answer or an error that repeating does not help. Every request has an id, so
    /// a repetition has no second effect. All methods run within <see cref="Client.Poll"/>.
    /// </summary>
    internal sealed class Exchange
    {
        private const int Tries = 10;
        private const double FirstPause = 0.1;
        private const double LongestPause = 2;
        private const double LongestHint = 30;

        /// <summary>A server sends a heartbeat every 15 seconds, so a longer silence is a lost connection.</summary>
        private const double LongestSilence = 45;

        private readonly Client client;
        private readonly WireRequest request;
        private readonly Action<Json> done;
        private readonly Action<TurnEvent> onEvent;
        private readonly Action<CallException> failed;
        private readonly MemoryStream body = new MemoryStream();
        private EventParser parser;
        private Connection connection;
        private double heard;
        private int failures;
        private string lastId = "";
        private string attempt = "";
        private long last;

        /// <param name="client">It runs the callbacks.</param>
        /// <param name="request">The request.</param>
        /// <param name="done">Called with the answer, or with the content of the last event.</param>
        /// <param name="onEvent">Called with each event; null if the answer is one document.</param>
        /// <param name="failed">Called with the error.</param>
        internal Exchange(Client client, WireRequest request, Action<Json> done, Action<TurnEvent> onEvent, Action<CallException> failed)
        {
            this.client = client;
            this.request = request;
            this.done = done;
            this.onEvent = onEvent;
            this.failed = failed;
        }

        internal void Start()
        {
            var headers = new Dictionary<string, string>();
            foreach (KeyValuePair<string, string> header in request.Headers)
            {
                headers.Add(header.Key, header.Value);
            }
            if (lastId.Length > 0)
            {
                headers.Add("last-event-id", lastId);
            }
            parser = new EventParser();
            body.SetLength(0);
            heard = client.Now;
            connection = new Connection(client, this);
            connection.Cancel = client.Transport.Send(new WireRequest(request.Method, request.Url, request.Body, headers), connection);
        }

        /// <summary>Ends the call without an answer.</summary>
        internal void Stop()
        {
            Connection open = connection;
            connection = null;
            if (open != null && open.Cancel != null)
            {
                open.Cancel();
            }
        }

        internal void CheckSilence()
        {
            if (connection != null && client.Now - heard > LongestSilence)
            {
                Repeat(CallException.Lost("no answer for " + LongestSilence + " seconds"));
            }
        }

        private void Receive(int status, byte[] bytes)
        {
            heard = client.Now;
            if (onEvent == null || status != 200)
            {
                body.Write(bytes, 0, bytes.Length);
                return;
            }
            try
            {
                foreach (TurnEvent one in parser.Read(bytes))
                {
                    Accept(one);
                    if (connection == null) // the turn has ended, or a callback has disposed of the client
                    {
                        return;
                    }
                }
            }
            catch (FormatException error)
            {
                Repeat(CallException.Lost(error.Message));
            }
        }

        private void Accept(TurnEvent one)
        {
            failures = 0;
            if (one.Name == "error")
            {
                EndWith(CallException.Of((int)one.Data["status"].Number, one.Data));
                return;
            }
            if (one.Attempt == attempt && one.Sequence <= last)
            {
                return;
            }
            lastId = one.Id;
            attempt = one.Attempt;
            last = one.Sequence;
            if (one.Name == "diff")
            {
                Finish();
                onEvent(one);
                done(one.Data);
            }
            else
            {
                onEvent(one);
            }
        }

        private void End(int status, string problem)
        {
            Json answer = Json.Null;
            try
            {
                answer = body.Length > 0 ? Json.Parse(Encoding.UTF8.GetString(body.ToArray())) : Json.Null;
            }
            catch (FormatException error)
            {
                problem = problem ?? error.Message;
            }
            if (status >= 400 && problem == null)
            {
                EndWith(CallException.Of(status, answer));
            }
            else if (problem != null || onEvent != null || answer.IsNull)
            {
                Repeat(CallException.Lost(problem ?? "the stream ended before the turn"));
            }
            else
            {
                Finish();
                done(answer);
            }
        }

        private void EndWith(CallException error)
        {
            bool isBusy = error.Status == 429 && error.RetryAfter <= LongestHint;
            if (error.IsLostConnection || isBusy)
            {
                Repeat(error);
                return;
            }
            Finish();
            failed(error);
        }

        private void Repeat(CallException error)
        {
            Stop();
            failures++;
            if (failures >= Tries)
            {
                Finish();
                failed(error);
                return;
            }
            double pause = Math.Min(LongestPause, FirstPause * Math.Pow(2, failures - 1));
            client.After(Math.Max(pause, Math.Min(error.RetryAfter ?? 0, LongestHint)), this);
        }

        private void Finish()
        {
            Stop();
            client.Remove(this);
        }

        /// <summary>One connection of an exchange. It forwards from any thread to the thread that polls.</summary>
        private sealed class Connection : IReceiver
        {
            private readonly Client client;
            private readonly Exchange owner;

            internal Connection(Client client, Exchange owner)
            {
                this.client = client;
                this.owner = owner;
            }

            internal Action Cancel { get; set; }

            public void Receive(int status, byte[] bytes)
            {
                Forward(() => owner.Receive(status, bytes));
            }

            public void End(int status, string problem)
            {
                Forward(() => owner.End(status, problem));
            }

            private void Forward(Action action)
            {
                client.Enqueue(() =>
                {
                    if (owner.connection == this) // later bytes of an abandoned connection have no effect
                    {
                        action();
                    }
                });
            }
        }
    }
}
