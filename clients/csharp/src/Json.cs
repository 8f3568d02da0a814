using System;
using System.Collections.Generic;
using System.Globalization;
using System.Text;

namespace Peripety
{
    /// <summary>
    /// An immutable JSON value. Members that do not exist are <see cref="Null"/>, so lookups can be chained.
    /// </summary>
    public sealed class Json
    {
        /// <summary>The value null, also that of members that do not exist.</summary>
        public static readonly Json Null = new Json(null);

        private const int DeepestLevel = 256;

        private static readonly List<Json> NoItems = new List<Json>();
        private static readonly Dictionary<string, Json> NoMembers = new Dictionary<string, Json>();

        private readonly object value;

        private Json(object value)
        {
            this.value = value;
        }

        /// <summary>Returns the JSON value of a text; null is <see cref="Null"/>.</summary>
        public static implicit operator Json(string text)
        {
            return text == null ? Null : new Json(text);
        }

        /// <summary>Returns the JSON value of a number.</summary>
        public static implicit operator Json(double number)
        {
            return new Json(number);
        }

        /// <summary>Returns the JSON value of a truth value.</summary>
        public static implicit operator Json(bool flag)
        {
            return new Json(flag);
        }

        /// <summary>Returns an object of names and values in turns: <c>Json.Object("seed", 7)</c>.</summary>
        /// <exception cref="ArgumentException">A value has no name.</exception>
        public static Json Object(params Json[] namesAndValues)
        {
            if (namesAndValues.Length % 2 != 0)
            {
                throw new ArgumentException("namesAndValues: a value is missing; give a value for each name");
            }
            var members = new Dictionary<string, Json>();
            for (int index = 0; index < namesAndValues.Length; index += 2)
            {
                members[namesAndValues[index].Text] = namesAndValues[index + 1] ?? Null;
            }
            return new Json(members);
        }

        /// <summary>Returns a list.</summary>
        public static Json Array(params Json[] items)
        {
            return new Json(new List<Json>(items));
        }

        /// <summary>The member with a name; <see cref="Null"/> if there is none.</summary>
        public Json this[string name]
        {
            get
            {
                Json found;
                return Members.TryGetValue(name, out found) ? found : Null;
            }
        }

        /// <summary>The members of an object; empty for other values.</summary>
        public IReadOnlyDictionary<string, Json> Members
        {
            get { return value as Dictionary<string, Json> ?? NoMembers; }
        }

        /// <summary>The items of a list; empty for other values.</summary>
        public IReadOnlyList<Json> Items
        {
            get { return value as List<Json> ?? NoItems; }
        }

        /// <summary>The text; empty for other values.</summary>
        public string Text
        {
            get { return value as string ?? ""; }
        }

        /// <summary>The number; 0 for other values.</summary>
        public double Number
        {
            get { return value is double ? (double)value : 0; }
        }

        /// <summary>True for the value true.</summary>
        public bool IsTrue
        {
            get { return value is bool && (bool)value; }
        }

        /// <summary>True for null.</summary>
        public bool IsNull
        {
            get { return value == null; }
        }

        /// <summary>True for a number.</summary>
        public bool IsNumber
        {
            get { return value is double; }
        }

        /// <summary>True for a text.</summary>
        public bool IsText
        {
            get { return value is string; }
        }

        /// <summary>True for an object.</summary>
        public bool IsObject
        {
            get { return value is Dictionary<string, Json>; }
        }

        /// <summary>Returns the value of a JSON text.</summary>
        /// <exception cref="FormatException">The text is not JSON; the message has the position.</exception>
        public static Json Parse(string text)
        {
            var reader = new Reader(text);
            Json found = reader.ReadValue(0);
            reader.SkipSpace();
            reader.Check(reader.Position == text.Length, "end expected");
            return found;
        }

        /// <summary>Returns the canonical form (RFC 8785), which is also the shortest.</summary>
        public override string ToString()
        {
            var text = new StringBuilder();
            Write(text);
            return text.ToString();
        }

        private void Write(StringBuilder text)
        {
            if (value is Dictionary<string, Json>)
            {
                var names = new List<string>(Members.Keys);
                names.Sort(string.CompareOrdinal); // by UTF-16 code units, as RFC 8785 requires
                text.Append('{');
                for (int index = 0; index < names.Count; index++)
                {
                    WriteText(index == 0 ? text : text.Append(','), names[index]);
                    this[names[index]].Write(text.Append(':'));
                }
                text.Append('}');
            }
            else if (value is List<Json>)
            {
                text.Append('[');
                for (int index = 0; index < Items.Count; index++)
                {
                    Items[index].Write(index == 0 ? text : text.Append(','));
                }
                text.Append(']');
            }
            else if (value is string)
            {
                WriteText(text, Text);
            }
            else if (value is double)
            {
                text.Append(DecimalText.Write(Number));
            }
            else
            {
                text.Append(IsNull ? "null" : IsTrue ? "true" : "false");
            }
        }

        private static void WriteText(StringBuilder text, string content)
        {
            text.Append('"');
            foreach (char letter in content)
            {
                int escape = "\b\t\n\f\r\"\\".IndexOf(letter);
                if (escape >= 0)
                {
                    text.Append('\\').Append("btnfr\"\\"[escape]);
                }
                else if (letter < ' ')
                {
                    text.Append("\\u").Append(((int)letter).ToString("x4", CultureInfo.InvariantCulture));
                }
                else
                {
                    text.Append(letter);
                }
            }
            text.Append('"');
        }

        /// <summary>Position in a JSON text.</summary>
        private sealed class Reader
        {
            private readonly string text;

            internal Reader(string text)
            {
                this.text = text;
            }

            internal int Position { get; private set; }

            private char Next
            {
                get { return Position < text.Length ? text[Position] : '\0'; }
            }

            internal void Check(bool isRight, string problem)
            {
                if (!isRight)
                {
                    throw new FormatException("position " + Position + ": " + problem + "; this is not JSON");
                }
            }

            internal void SkipSpace()
            {
                while (Next == ' ' || Next == '\t' || Next == '\n' || Next == '\r')
                {
                    Position++;
                }
            }

            internal Json ReadValue(int level)
            {
                Check(level < DeepestLevel, "too many levels");
                SkipSpace();
                switch (Next)
                {
                    case '{':
                        return ReadObject(level);
                    case '[':
                        return ReadList(level);
                    case '"':
                        return ReadText();
                    case 't':
                        return ReadWord("true", true);
                    case 'f':
                        return ReadWord("false", false);
                    case 'n':
                        return ReadWord("null", Null);
                    default:
                        return ReadNumber();
                }
            }

            private bool Skip(char letter)
            {
                SkipSpace();
                bool isThere = Next == letter;
                Position += isThere ? 1 : 0;
                return isThere;
            }

            private Json ReadObject(int level)
            {
                var members = new Dictionary<string, Json>();
                Position++;
                if (!Skip('}'))
                {
                    do
                    {
                        SkipSpace();
                        string name = ReadText();
                        Check(Skip(':'), "`:` expected");
                        Check(!members.ContainsKey(name), "the name occurs twice");
                        members.Add(name, ReadValue(level + 1));
                    }
                    while (Skip(','));
                    Check(Skip('}'), "`}` expected");
                }
                return new Json(members);
            }

            private Json ReadList(int level)
            {
                var items = new List<Json>();
                Position++;
                if (!Skip(']'))
                {
                    do
                    {
                        items.Add(ReadValue(level + 1));
                    }
                    while (Skip(','));
                    Check(Skip(']'), "`]` expected");
                }
                return new Json(items);
            }

            private Json ReadWord(string word, Json meaning)
            {
                Check(string.CompareOrdinal(text, Position, word, 0, word.Length) == 0, word + " expected");
                Position += word.Length;
                return meaning;
            }

            private string ReadText()
            {
                Check(Next == '"', "text expected");
                var found = new StringBuilder();
                for (Position++; Next != '"'; Position++)
                {
                    Check(Next >= ' ', "text is not closed");
                    found.Append(Next == '\\' ? ReadEscape() : Next);
                }
                Position++;
                return found.ToString();
            }

            private char ReadEscape()
            {
                Position++;
                int escape = Next == '\0' ? -1 : "btnfr\"\\/".IndexOf(Next);
                if (escape >= 0)
                {
                    return "\b\t\n\f\r\"\\/"[escape];
                }
                ushort unit = 0;
                Check(Next == 'u' && Position + 4 < text.Length, "unknown escape");
                string digits = text.Substring(Position + 1, 4);
                Check(ushort.TryParse(digits, NumberStyles.AllowHexSpecifier, CultureInfo.InvariantCulture, out unit), "unknown escape");
                Position += 4;
                return (char)unit;
            }

            private Json ReadNumber()
            {
                int start = Position;
                Position += Next == '-' ? 1 : 0;
                Check(Next >= '0' && Next <= '9', "value expected");
                bool isZero = Next == '0';
                SkipDigits();
                Check(!isZero || text[Position - 1] == '0' && Position - start <= 2, "number begins with 0");
                if (Next == '.')
                {
                    Position++;
                    Check(SkipDigits() > 0, "digit expected");
                }
                if (Next == 'e' || Next == 'E')
                {
                    Position++;
                    Position += Next == '+' || Next == '-' ? 1 : 0;
                    Check(SkipDigits() > 0, "digit expected");
                }
                double number = DecimalText.Read(text.Substring(start, Position - start));
                Check(!double.IsInfinity(number), "number is too large");
                return number;
            }

            private int SkipDigits()
            {
                int start = Position;
                while (Next >= '0' && Next <= '9')
                {
                    Position++;
                }
                return Position - start;
            }
        }
    }
}
