// The part of the API of Unity that the client uses, over System.Net. With it, the files of `unity` run without Unity.
using System;
using System.Collections.Concurrent;
using System.IO;
using System.Net;
using System.Threading;

namespace UnityEngine
{
    public class MonoBehaviour
    {
    }

    public sealed class SerializeField : Attribute
    {
    }

    public static class Debug
    {
        public static void LogError(object message)
        {
            Console.Error.WriteLine(message);
        }
    }

    public class AsyncOperation
    {
        public event Action<AsyncOperation> completed;

        internal void Complete()
        {
            completed(this);
        }
    }
}

namespace UnityEngine.Networking
{
    public class DownloadHandlerScript
    {
        internal void Forward(byte[] data, int length)
        {
            ReceiveData(data, length);
        }

        protected virtual bool ReceiveData(byte[] data, int dataLength)
        {
            return true;
        }
    }

    public sealed class UploadHandlerRaw
    {
        internal readonly byte[] Data;

        public UploadHandlerRaw(byte[] data)
        {
            Data = data;
        }

        public string contentType { get; set; }
    }

    public sealed class UnityWebRequest : IDisposable
    {
        private static readonly ConcurrentQueue<Action> Frame = new ConcurrentQueue<Action>();

        private readonly HttpWebRequest http;
        private readonly AsyncOperation operation = new AsyncOperation();

        public UnityWebRequest(string url, string method)
        {
            http = (HttpWebRequest)WebRequest.Create(url);
            http.Method = method;
        }

        public enum Result
        {
            InProgress,
            Success,
            ConnectionError,
            ProtocolError,
            DataProcessingError,
        }

        public DownloadHandlerScript downloadHandler { get; set; }

        public UploadHandlerRaw uploadHandler { get; set; }

        public Result result { get; private set; }

        public long responseCode { get; private set; }

        public string error { get; private set; }

        /// <summary>Runs the callbacks, as Unity does once a frame on its main thread.</summary>
        public static void RunFrame()
        {
            Action next;
            while (Frame.TryDequeue(out next))
            {
                next();
            }
        }

        public void SetRequestHeader(string name, string value)
        {
            if (name == "accept")
            {
                http.Accept = value;
            }
            else
            {
                http.Headers[name] = value;
            }
        }

        public AsyncOperation SendWebRequest()
        {
            new Thread(Run) { IsBackground = true }.Start();
            return operation;
        }

        public void Abort()
        {
            http.Abort();
        }

        public void Dispose()
        {
            http.Abort();
        }

        private void Run()
        {
            Result found = Result.Success;
            string problem = null;
            try
            {
                if (uploadHandler != null)
                {
                    http.ContentType = uploadHandler.contentType;
                    using (Stream stream = http.GetRequestStream())
                    {
                        stream.Write(uploadHandler.Data, 0, uploadHandler.Data.Length);
                    }
                }
                using (HttpWebResponse response = Respond(ref found))
                using (Stream body = response.GetResponseStream())
                {
                    long status = (long)response.StatusCode;
                    var buffer = new byte[4096];
                    int count;
                    while ((count = body.Read(buffer, 0, buffer.Length)) > 0)
                    {
                        byte[] data = (byte[])buffer.Clone();
                        int length = count;
                        Frame.Enqueue(() =>
                        {
                            responseCode = status;
                            downloadHandler.Forward(data, length);
                        });
                    }
                    Frame.Enqueue(() => responseCode = status);
                }
            }
            catch (Exception failure)
            {
                found = Result.ConnectionError;
                problem = failure.Message;
            }
            Frame.Enqueue(() =>
            {
                result = found;
                error = problem;
                operation.Complete();
            });
        }

        private HttpWebResponse Respond(ref Result found)
        {
            try
            {
                return (HttpWebResponse)http.GetResponse();
            }
            catch (WebException failure) when (failure.Response != null)
            {
                found = Result.ProtocolError;
                return (HttpWebResponse)failure.Response;
            }
        }
    }
}
