using System.Collections.Generic;

namespace Peripety
{
    /// <summary>A session, as of its last turn that this client has received.</summary>
    public sealed class Session
    {
        internal Session(Json data)
        {
            Data = data;
            Id = data["session_id"].Text;
            Pov = data["pov_entity_id"].Text;
            Turn = (long)data["turn"].Number;
            Update(data);
        }

        /// <summary>The session as the server sent it when it was created or opened.</summary>
        public Json Data { get; private set; }

        /// <summary>The id.</summary>
        public string Id { get; private set; }

        /// <summary>Entity whose point of view is received; empty for the public one.</summary>
        public string Pov { get; private set; }

        /// <summary>Number of committed turns.</summary>
        public long Turn { get; private set; }

        /// <summary>The status, such as <c>ongoing</c>, <c>won</c>, <c>lost</c> or <c>survived</c>.</summary>
        public string Status { get; private set; }

        /// <summary>Chain hash after the last turn.</summary>
        public string ChainHash { get; private set; }

        /// <summary>Legal actions of the next turn, with <c>action_id</c>, <c>name</c> and <c>params</c>.</summary>
        public IReadOnlyList<Json> LegalActions { get; private set; }

        /// <summary>True if turns can be played.</summary>
        public bool IsOngoing
        {
            get { return Status == "ongoing"; }
        }

        internal void Commit(TurnEvent end)
        {
            Turn = end.Turn;
            Update(end.Data);
        }

        private void Update(Json data)
        {
            Status = data["status"]["kind"].Text;
            ChainHash = data["chain_hash"].Text;
            LegalActions = data["legal_actions"].Items;
        }
    }

    /// <summary>Event of a turn.</summary>
    public sealed class TurnEvent
    {
        internal TurnEvent(string name, string id, Json data)
        {
            Name = name;
            Id = id;
            Data = data;
            int mark = id.IndexOf('.');
            long sequence;
            Sequence = mark > 0 && long.TryParse(id.Substring(0, mark), out sequence) ? sequence : 0;
            Attempt = id.Substring(mark + 1);
            Turn = (long)data["turn"].Number;
        }

        /// <summary>
        /// The name: <c>accepted</c>, <c>action</c>, <c>roll</c>, <c>world</c>, <c>narrative_chunk</c>,
        /// <c>narrative_retracted</c>, <c>dialogue</c>, <c>degraded</c> or <c>diff</c>. If <c>accepted</c> arrives again,
        /// discard the earlier events of the turn.
        /// </summary>
        public string Name { get; private set; }

        /// <summary>The content; its members depend on the name.</summary>
        public Json Data { get; private set; }

        /// <summary>Number of the event in its session, from 1.</summary>
        public long Sequence { get; private set; }

        /// <summary>Number of the turn.</summary>
        public long Turn { get; private set; }

        /// <summary>Text of a <c>narrative_chunk</c> or <c>dialogue</c>; empty for other events.</summary>
        public string Text
        {
            get { return Data["text"].Text; }
        }

        internal string Id { get; private set; }

        internal string Attempt { get; private set; }
    }
}
