using System;
using System.IO;
using System.Text;
using Peripety;

/// <summary>
/// Verifies the transcripts that standard input names, one on a line. With an argument, it writes the canonical form of
/// each line instead.
/// </summary>
static class Verify
{
    static void Main(string[] arguments)
    {
        var input = new StreamReader(Console.OpenStandardInput(), new UTF8Encoding(false));
        var output = new StreamWriter(Console.OpenStandardOutput(), new UTF8Encoding(false)) { AutoFlush = true };
        for (string line = input.ReadLine(); line != null; line = input.ReadLine())
        {
            output.WriteLine(arguments.Length > 0 ? Canonical(line) : Verified(line));
        }
    }

    static string Canonical(string line)
    {
        try
        {
            return Json.Parse(line).ToString();
        }
        catch (FormatException)
        {
            return "not JSON";
        }
    }

    static string Verified(string path)
    {
        try
        {
            using (FileStream bundle = File.OpenRead(path))
            {
                Transcript found = Transcript.Verify(bundle);
                return found.Turns + " " + found.ChainHash + " " + found.StateHash;
            }
        }
        catch (TranscriptException error)
        {
            return "false " + error.Line + " " + error.Turn;
        }
    }
}
