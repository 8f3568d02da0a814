#if UNITY_2021_3_OR_NEWER
using System;
using System.Collections.Generic;
using UnityEngine.Networking;

namespace Peripety
{
    /// <summary>
    /// Transport over UnityWebRequest, for every platform of Unity, also the web build, which has neither sockets nor
    /// threads. Create and use it on the main thread.
    /// </summary>
    public sealed class UnityTransport : ITransport
    {
        /// <inheritdoc/>
        public Action Send(WireRequest request, IReceiver receiver)
        {
            var web = new UnityWebRequest(request.Url, request.Method);
            web.downloadHandler = new StreamHandler(web, receiver);
            if (request.Body != null)
            {
                web.uploadHandler = new UploadHandlerRaw(request.Body) { contentType = "application/json" };
            }
            foreach (KeyValuePair<string, string> header in request.Headers)
            {
                web.SetRequestHeader(header.Key, header.Value);
            }
            bool hasEnded = false;
            web.SendWebRequest().completed += operation =>
            {
                bool isLost = web.result == UnityWebRequest.Result.ConnectionError
                    || web.result == UnityWebRequest.Result.DataProcessingError;
                receiver.End((int)web.responseCode, isLost ? web.error : null);
                hasEnded = true;
                web.Dispose();
            };
            return () =>
            {
                if (!hasEnded)
                {
                    web.Abort();
                }
            };
        }

        private sealed class StreamHandler : DownloadHandlerScript
        {
            private readonly UnityWebRequest web;
            private readonly IReceiver receiver;

            internal StreamHandler(UnityWebRequest web, IReceiver receiver)
            {
                this.web = web;
                this.receiver = receiver;
            }

            protected override bool ReceiveData(byte[] data, int dataLength)
            {
                var bytes = new byte[dataLength];
                Array.Copy(data, bytes, dataLength);
                receiver.Receive((int)web.responseCode, bytes);
                return true;
            }
        }
    }
}
#endif
