#if UNITY_2021_3_OR_NEWER
using UnityEngine;

namespace Peripety
{
    /// <summary>Component with a client that is polled once a frame, and that ends with the component.</summary>
    public sealed class PeripetyGame : MonoBehaviour
    {
        [SerializeField] private string url = "http://127.0.0.1:50080";

        /// <summary>The client, from Awake to OnDestroy.</summary>
        public Client Client { get; private set; }

        private void Awake()
        {
            Client = new Client(url, "", new UnityTransport());
            Client.Failed += error => Debug.LogError(error.Code + ": " + error.Message);
        }

        private void Update()
        {
            Client.Poll();
        }

        private void OnDestroy()
        {
            Client.Dispose();
        }
    }
}
#endif
