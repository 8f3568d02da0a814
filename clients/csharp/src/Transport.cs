using System;
using System.Collections.Generic;
using System.IO;
using System.Net.Http;
using System.Threading;
using System.Threading.Tasks;

namespace Peripety
{
    /// <summary>One HTTP request.</summary>
    public sealed class WireRequest
    {
        internal WireRequest(string method, string url, byte[] body, Dictionary<string, string> headers)
        {
            Method = method;
            Url = url;
            Body = body;
            Headers = headers;
        }

        /// <summary>The method, <c>GET</c> or <c>POST</c>.</summary>
        public string Method { get; private set; }

        /// <summary>The absolute address.</summary>
        public string Url { get; private set; }

        /// <summary>JSON in UTF-8; null without a body.</summary>
        public byte[] Body { get; private set; }

        /// <summary>Headers, without those that describe the body.</summary>
        public IReadOnlyDictionary<string, string> Headers { get; private set; }
    }

    /// <summary>Receiver of one response. Its methods may be called on any thread, one at a time.</summary>
    public interface IReceiver
    {
        /// <summary>Receives the next bytes of the body. The array must not change afterwards.</summary>
        void Receive(int status, byte[] bytes);

        /// <summary>Receives the end. <paramref name="problem"/> is null unless the connection was lost.</summary>
        void End(int status, string problem);
    }

    /// <summary>Sends HTTP requests. Replace it where a platform has its own API, such as the web build of Unity.</summary>
    public interface ITransport
    {
        /// <summary>Sends a request, and returns the action that cancels it.</summary>
        Action Send(WireRequest request, IReceiver receiver);
    }

    /// <summary>Transport over <see cref="HttpClient"/>, for every platform with threads.</summary>
    public sealed class HttpTransport : ITransport
    {
        private static readonly HttpClient Http = new HttpClient { Timeout = Timeout.InfiniteTimeSpan };

        /// <inheritdoc/>
        public Action Send(WireRequest request, IReceiver receiver)
        {
            var cancel = new CancellationTokenSource();
            Task.Run(() => RunAsync(request, receiver, cancel.Token));
            return cancel.Cancel;
        }

        private static async Task RunAsync(WireRequest request, IReceiver receiver, CancellationToken cancel)
        {
            int status = 0;
            string problem = null;
            try
            {
                using (HttpRequestMessage message = ToMessage(request))
                using (HttpResponseMessage response = await Http
                    .SendAsync(message, HttpCompletionOption.ResponseHeadersRead, cancel)
                    .ConfigureAwait(false))
                using (cancel.Register(response.Dispose))
                using (Stream body = await response.Content.ReadAsStreamAsync().ConfigureAwait(false))
                {
                    status = (int)response.StatusCode;
                    var buffer = new byte[16 * 1024];
                    int count;
                    while ((count = await body.ReadAsync(buffer, 0, buffer.Length, cancel).ConfigureAwait(false)) > 0)
                    {
                        var bytes = new byte[count];
                        Array.Copy(buffer, bytes, count);
                        receiver.Receive(status, bytes);
                    }
                }
            }
            catch (Exception error) // each kind of failure has its own class on each platform
            {
                problem = (error.InnerException ?? error).Message;
            }
            receiver.End(status, problem);
        }

        private static HttpRequestMessage ToMessage(WireRequest request)
        {
            var message = new HttpRequestMessage(new HttpMethod(request.Method), request.Url);
            if (request.Body != null)
            {
                message.Content = new ByteArrayContent(request.Body);
                message.Content.Headers.Add("content-type", "application/json");
            }
            foreach (KeyValuePair<string, string> header in request.Headers)
            {
                message.Headers.Add(header.Key, header.Value);
            }
            return message;
        }
    }
}
