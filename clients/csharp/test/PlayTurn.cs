using System;
using System.Threading;
using Peripety;

/// <summary>Plays the turn of a test in an existing session, and prints its events.</summary>
static class PlayTurn
{
    static int Main()
    {
        int thread = Thread.CurrentThread.ManagedThreadId;
        ITransport transport = null;
#if UNITY_2021_3_OR_NEWER
        transport = new UnityTransport();
#endif
        string action = Environment.GetEnvironmentVariable("PERIPETY_ACTION") ?? "tend";
        using (var client = new Client(Environment.GetEnvironmentVariable("PERIPETY_URL"), "", transport))
        {
            bool hasEnded = false;
            client.Failed += error =>
            {
                Console.WriteLine("error {0} {1}", error.Code, error.Status);
                Console.WriteLine("reason {0}", error.Reason);
                foreach (FieldViolation violation in error.Violations)
                {
                    Console.WriteLine("violation {0}", violation.Field);
                }
                hasEnded = true;
            };
            client.Open(Environment.GetEnvironmentVariable("PERIPETY_SESSION"), session =>
                client.Play(
                    session,
                    Client.Turn(action, "I listen."),
                    one =>
                    {
                        Json text = one.Text;
                        string place = Thread.CurrentThread.ManagedThreadId == thread ? "" : " on another thread";
                        Console.WriteLine("{0} {1} {2}{3}", one.Sequence, one.Name, text, place);
                    },
                    () =>
                    {
                        Console.WriteLine("turn {0} {1} {2}", session.Turn, session.Status, session.ChainHash);
                        hasEnded = true;
                    }));
            while (!hasEnded)
            {
                client.Poll();
#if UNITY_2021_3_OR_NEWER
                UnityEngine.Networking.UnityWebRequest.RunFrame();
#endif
                Thread.Sleep(1);
            }
        }
        return 0;
    }
}
