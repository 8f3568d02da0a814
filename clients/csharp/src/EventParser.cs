using System.Collections.Generic;
using System.IO;
using System.Text;

namespace Peripety
{
    /// <summary>
    /// Parser of server-sent events. An event without its blank line at the end is incomplete, and is not returned.
    /// </summary>
    internal sealed class EventParser
    {
        private readonly MemoryStream line = new MemoryStream();
        private string name = "";
        private string id = "";
        private string data = "";

        /// <summary>Returns the events that these bytes complete.</summary>
        /// <exception cref="System.FormatException">The data of an event is not JSON.</exception>
        internal List<TurnEvent> Read(byte[] bytes)
        {
            var found = new List<TurnEvent>();
            foreach (byte next in bytes)
            {
                if (next != '\n')
                {
                    line.WriteByte(next);
                    continue;
                }
                string text = Encoding.UTF8.GetString(line.ToArray()).TrimEnd('\r');
                line.SetLength(0);
                if (text.Length > 0)
                {
                    ReadField(text);
                }
                else if (data.Length > 0)
                {
                    found.Add(new TurnEvent(name, id, Json.Parse(data)));
                    name = id = data = "";
                }
            }
            return found;
        }

        private void ReadField(string text)
        {
            int mark = text.IndexOf(':');
            if (mark <= 0) // a comment, such as a heartbeat
            {
                return;
            }
            string value = text.Substring(mark + 1);
            value = value.StartsWith(" ", System.StringComparison.Ordinal) ? value.Substring(1) : value;
            switch (text.Substring(0, mark))
            {
                case "event":
                    name = value;
                    break;
                case "id":
                    id = value;
                    break;
                case "data":
                    data += value;
                    break;
            }
        }
    }
}
