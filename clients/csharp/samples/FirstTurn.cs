using System;
using System.IO;
using System.Threading;
using Peripety;

static class FirstTurn
{
    static void Main()
    {
        var client = new Client(Environment.GetEnvironmentVariable("PERIPETY_URL") ?? "http://127.0.0.1:50080");
        bool hasEnded = false;
        client.Compile(File.ReadAllText("scenario.json"), scenario =>
            client.Create(scenario, 7, session =>
                client.Play(session, Client.Turn("tend", "I listen."), e => Console.WriteLine(e.Name + " " + e.Text), () => hasEnded = true)));
        for (; !hasEnded; Thread.Sleep(16)) client.Poll(); // your game loop
    }
}
