using System;
using System.Collections.Generic;
using System.IO;
using System.Security.Cryptography;
using System.Text;

namespace Peripety
{
    /// <summary>First defect of a transcript.</summary>
    public sealed class TranscriptException : Exception
    {
        internal TranscriptException(long line, long turn, string problem)
            : base("line " + line + (turn == 0 ? "" : " (turn " + turn + ")") + ": " + problem + "; export the session again")
        {
            Line = line;
            Turn = turn;
        }

        /// <summary>The false line, from 1.</summary>
        public long Line { get; private set; }

        /// <summary>The turn of the line; 0 if the line is not a turn.</summary>
        public long Turn { get; private set; }
    }

    /// <summary>A verified session.</summary>
    public sealed class Transcript
    {
        private static readonly string[] Repeated = { "changes", "state_hash", "status" };

        private readonly Stream bundle;
        private readonly SHA256 seal = SHA256.Create();
        private byte[] line = { };
        private byte[] ahead;
        private byte[] after;
        private long number;

        private Transcript(Stream bundle)
        {
            this.bundle = bundle;
            ahead = ReadLine();
            after = ReadLine();
        }

        /// <summary>Number of turns.</summary>
        public long Turns { get; private set; }

        /// <summary>Chain hash after the last turn; proof only if you compare it with one from a trusted source.</summary>
        public string ChainHash { get; private set; }

        /// <summary>Hash of the state after the last turn; empty without turns.</summary>
        public string StateHash { get; private set; }

        /// <summary>Hash of the specification.</summary>
        public string SpecHash { get; private set; }

        /// <summary>
        /// Verifies an exported session without a server and without an engine: every line is canonical, every hash is
        /// the computed one, and nothing was left out. It reads one line at a time, through a buffer of the stream.
        /// It proves that the turns are those that led to the chain hash. Only a replay (ImportSession) proves that the
        /// rules were followed.
        /// </summary>
        /// <exception cref="TranscriptException">The first false line.</exception>
        public static Transcript Verify(Stream bundle)
        {
            var found = new Transcript(bundle);
            using (found.seal)
            {
                found.ReadAll();
            }
            return found;
        }

        private void ReadAll()
        {
            Json header = Next(0);
            Check(Is(header["kind"], "peripety.session") && Is(header["version"], 1)
                && Is(header["engine_version"], "1.0") && Is(header["rng_version"], 1), 0, "not a session of a supported version");
            Check(header["spec_hash"].IsText && header["turns"].IsNumber && header["first_seed"].IsNumber, 0,
                "a key of the header is missing or has another type");
            foreach (string key in new[] { "spec_hash", "certificate_hash" })
            {
                if (!header[key].IsNull)
                {
                    Next(0);
                    Check(Is(header[key], Hash(line, line.Length - 1)), 0, "SHA-256 of the line is not " + key + " of the header");
                }
            }
            SpecHash = header["spec_hash"].Text;
            StateHash = "";
            ChainHash = Hash(Canonical(Json.Object("seed", header["first_seed"], "spec_hash", SpecHash)));
            while (after.Length > 0)
            {
                ReadTurn();
                Check(Turns <= header["turns"].Number, Turns, "more turns than the header declares");
            }
            if (Turns != header["turns"].Number)
            {
                throw new TranscriptException(number + 1, 0, "a turn is missing that the header declares");
            }
            if (!Is(header["chain_hash"], ChainHash))
            {
                throw new TranscriptException(1, 0, "chain_hash: computed " + ChainHash);
            }
            seal.TransformFinalBlock(line, 0, 0);
            Json end = Json.Object("kind", "peripety.session.end", "lines", number, "sha256", Hex(seal.Hash));
            if (!IsLine(ahead, Canonical(end)))
            {
                throw new TranscriptException(number + 1, 0, "not the hash of the lines before it");
            }
        }

        private void ReadTurn()
        {
            Turns++;
            Json turn = Next(Turns);
            Json record = turn["record"];
            IReadOnlyList<Json> events = turn["events"].Items;
            Json end = events.Count > 0 ? events[events.Count - 1] : Json.Null;
            Check(Is(record["turn"], Turns) && Is(end["kind"], "committed"), Turns,
                "not the record of this turn up to its committed event");
            byte[] content = Canonical(record);
            var linked = new byte[32 + content.Length];
            for (int index = 0; index < 32; index++)
            {
                linked[index] = Convert.ToByte(ChainHash.Substring(2 * index, 2), 16);
            }
            content.CopyTo(linked, 32);
            ChainHash = Hash(linked);
            Check(Is(end["chain_hash"], ChainHash), Turns, "chain_hash: computed " + ChainHash);
            foreach (string key in Repeated)
            {
                bool isSame = !record[key].IsNull && record[key].ToString() == end[key].ToString();
                Check(isSame, Turns, key + " of the committed event differs from the record");
            }
            StateHash = record["state_hash"].Text;
        }

        /// <summary>Returns the value of the next line, which must be an object in canonical form.</summary>
        private Json Next(long turn)
        {
            line = ahead;
            ahead = after;
            after = ReadLine();
            number++;
            seal.TransformBlock(line, 0, line.Length, null, 0);
            Json value = Json.Null;
            try
            {
                value = Json.Parse(Encoding.UTF8.GetString(line));
            }
            catch (FormatException)
            {
                // The check below names the line.
            }
            Check(value.IsObject && IsLine(line, Canonical(value)), turn, "not an object in canonical JSON");
            return value;
        }

        private byte[] ReadLine()
        {
            var found = new MemoryStream();
            int next;
            do
            {
                next = bundle.ReadByte();
                if (next >= 0)
                {
                    found.WriteByte((byte)next);
                }
            }
            while (next >= 0 && next != '\n');
            return found.ToArray();
        }

        private void Check(bool isRight, long turn, string problem)
        {
            if (!isRight)
            {
                throw new TranscriptException(number, turn, problem);
            }
        }

        private static bool Is(Json value, string expected)
        {
            return value.IsText && value.Text == expected;
        }

        private static bool Is(Json value, double expected)
        {
            return value.IsNumber && value.Number == expected;
        }

        /// <summary>Returns true if a line is a content and a line feed.</summary>
        private static bool IsLine(byte[] line, byte[] content)
        {
            if (line.Length != content.Length + 1 || line[line.Length - 1] != '\n')
            {
                return false;
            }
            for (int index = 0; index < content.Length; index++)
            {
                if (line[index] != content[index])
                {
                    return false;
                }
            }
            return true;
        }

        private static byte[] Canonical(Json value)
        {
            return Encoding.UTF8.GetBytes(value.ToString());
        }

        private static string Hash(byte[] content)
        {
            return Hash(content, content.Length);
        }

        private static string Hash(byte[] content, int length)
        {
            using (SHA256 hash = SHA256.Create())
            {
                return Hex(hash.ComputeHash(content, 0, Math.Max(0, length)));
            }
        }

        private static string Hex(byte[] bytes)
        {
            return BitConverter.ToString(bytes).Replace("-", "").ToLowerInvariant();
        }
    }
}
