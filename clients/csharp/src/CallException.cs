using System;
using System.Collections.Generic;

namespace Peripety
{
    /// <summary>An invalid field of a request.</summary>
    public struct FieldViolation
    {
        /// <summary>Path of the field, such as <c>actions[0].action_id</c>.</summary>
        public string Field;

        /// <summary>The defect and its remedy.</summary>
        public string Reason;
    }

    /// <summary>A failed call. Decide by its reason, and show its message to people.</summary>
    public sealed class CallException : Exception
    {
        private CallException(int status, string code, string message, Json problem)
            : base(message)
        {
            Status = status;
            Code = code;
            ErrorReason reason;
            Reason = Enum.TryParse(code.Replace("_", ""), true, out reason) ? reason : ErrorReason.Unspecified;
            RetryAfter = problem["retry_after"].IsNumber ? problem["retry_after"].Number : (double?)null;
            var violations = new List<FieldViolation>();
            foreach (Json one in problem["violations"].Items)
            {
                violations.Add(new FieldViolation { Field = one["field"].Text, Reason = one["reason"].Text });
            }
            Violations = violations;
        }

        /// <summary>The reason; <see cref="ErrorReason.Unspecified"/> for one that this client does not know.</summary>
        public ErrorReason Reason { get; private set; }

        /// <summary>The reason as the server sent it, or the code of a finding; empty for a lost connection.</summary>
        public string Code { get; private set; }

        /// <summary>HTTP status; 0 for a lost connection.</summary>
        public int Status { get; private set; }

        /// <summary>Invalid fields with their remedies.</summary>
        public IReadOnlyList<FieldViolation> Violations { get; private set; }

        /// <summary>Seconds to wait before a repetition; null without a hint.</summary>
        public double? RetryAfter { get; private set; }

        /// <summary>True if the effect is unknown. The client has repeated the request before it reports this.</summary>
        public bool IsLostConnection
        {
            get { return Status == 0 || Status == 502 || Status == 503; }
        }

        internal static CallException Lost(string problem)
        {
            return new CallException(0, "", "connection lost: " + problem + "; check the address and repeat the call", Json.Null);
        }

        /// <summary>Returns the error of a problem document (RFC 9457).</summary>
        internal static CallException Of(int status, Json problem)
        {
            string detail = problem["detail"].Text;
            string message = detail.Length > 0 ? detail : "HTTP status " + status + "; check the address of the server";
            return new CallException(status, problem["code"].Text, message, problem);
        }
    }
}
