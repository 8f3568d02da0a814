using System;
using System.Globalization;
using System.Numerics;

namespace Peripety
{
    /// <summary>
    /// Doubles as decimal text, with the same result on every platform. Mono alone reads one text in sixty with 17 digits
    /// as a neighbor of the nearest double, and writes the last digit wrong.
    /// </summary>
    internal static class DecimalText
    {
        private const int MantissaBits = 52;

        /// <summary>Returns the double that is nearest to a number of JSON, or infinity.</summary>
        internal static double Read(string text)
        {
            int mark = text.IndexOfAny(new[] { 'e', 'E' });
            string mantissa = mark < 0 ? text : text.Substring(0, mark);
            bool isNegative = mantissa.StartsWith("-", StringComparison.Ordinal);
            mantissa = isNegative ? mantissa.Substring(1) : mantissa;
            int point = mantissa.IndexOf('.');
            string figures = (point < 0 ? mantissa : mantissa.Remove(point, 1)).TrimStart('0');
            int exponent;
            if (figures.Length == 0)
            {
                return 0;
            }
            if (!int.TryParse(mark < 0 ? "0" : text.Substring(mark + 1), NumberStyles.AllowLeadingSign, CultureInfo.InvariantCulture, out exponent))
            {
                exponent = text[mark + 1] == '-' ? -100000 : 100000; // beyond every double
            }
            exponent = Math.Max(-100000, Math.Min(100000, exponent)) - (point < 0 ? 0 : mantissa.Length - point - 1);
            double found = Nearest(figures, exponent);
            return isNegative ? -found : found;
        }

        /// <summary>Returns a number as ECMAScript writes it: the fewest digits that are read as the same double.</summary>
        internal static string Write(double number)
        {
            if (number == 0)
            {
                return "0";
            }
            double size = Math.Abs(number);
            string shortest = size.ToString("E14", CultureInfo.InvariantCulture);
            int exponent = ExponentOf(shortest);
            int lowest = exponent - 1; // the text may be rounded up to the next power of ten
            string figures = shortest.Substring(0, shortest.IndexOf('E')).Replace(".", "");
            bool isSubnormal = size < 2.2250738585072014e-308; // these have fewer digits than 15
            if (isSubnormal || Read(shortest) != size)
            {
                for (int digits = isSubnormal ? 1 : 15; digits <= 17; digits++)
                {
                    exponent = lowest;
                    figures = Figures(size, digits, ref exponent);
                    if (Read(figures + "E" + (exponent - digits + 1).ToString(CultureInfo.InvariantCulture)) == size)
                    {
                        break;
                    }
                }
            }
            return (number < 0 ? "-" : "") + Placed(figures.TrimEnd('0'), exponent);
        }

        private static int ExponentOf(string text)
        {
            return int.Parse(text.Substring(text.IndexOf('E') + 1), NumberStyles.AllowLeadingSign, CultureInfo.InvariantCulture);
        }

        /// <summary>
        /// Returns the figures of a number, rounded to the nearest. <paramref name="exponent"/> is the place of the first
        /// one; on entry, it is right or one too low.
        /// </summary>
        private static string Figures(double size, int digits, ref int exponent)
        {
            long bits = BitConverter.DoubleToInt64Bits(size);
            int biased = (int)(bits >> MantissaBits);
            long fraction = bits & ((1L << MantissaBits) - 1);
            BigInteger numerator = biased == 0 ? fraction : fraction | (1L << MantissaBits);
            int shift = Math.Max(1, biased) - 1075;
            BigInteger denominator = shift < 0 ? BigInteger.One << -shift : BigInteger.One;
            numerator = shift > 0 ? numerator << shift : numerator;
            while (true)
            {
                int scale = digits - 1 - exponent;
                BigInteger above = scale > 0 ? numerator * BigInteger.Pow(10, scale) : numerator;
                BigInteger below = scale < 0 ? denominator * BigInteger.Pow(10, -scale) : denominator;
                string figures = Rounded(above, below, 0).ToString(CultureInfo.InvariantCulture);
                if (figures.Length == digits)
                {
                    return figures;
                }
                exponent += figures.Length - digits;
            }
        }

        private static string Placed(string figures, int exponent)
        {
            if (exponent >= 21 || exponent < -6)
            {
                string fraction = figures.Length == 1 ? "" : "." + figures.Substring(1);
                return figures[0] + fraction + (exponent < 0 ? "e" : "e+") + exponent.ToString(CultureInfo.InvariantCulture);
            }
            if (exponent < 0)
            {
                return "0." + new string('0', -exponent - 1) + figures;
            }
            return figures.Length <= exponent + 1
                ? figures.PadRight(exponent + 1, '0')
                : figures.Substring(0, exponent + 1) + "." + figures.Substring(exponent + 1);
        }

        private static double Nearest(string figures, int exponent)
        {
            int magnitude = figures.Length + exponent;
            if (magnitude > 310 || magnitude < -330)
            {
                return magnitude > 0 ? double.PositiveInfinity : 0;
            }
            BigInteger digits = BigInteger.Parse(figures, CultureInfo.InvariantCulture);
            if (figures.Length <= 15 && Math.Abs(exponent) <= 22)
            {
                double whole = (double)(long)digits; // both operands are exact, so the result is the nearest
                return exponent < 0 ? whole / PowerOfTen(-exponent) : whole * PowerOfTen(exponent);
            }
            BigInteger numerator = exponent < 0 ? digits : digits * BigInteger.Pow(10, exponent);
            BigInteger denominator = exponent < 0 ? BigInteger.Pow(10, -exponent) : BigInteger.One;
            return Divide(numerator, denominator);
        }

        private static double PowerOfTen(int exponent)
        {
            double power = 1;
            for (int index = 0; index < exponent; index++)
            {
                power *= 10;
            }
            return power;
        }

        /// <summary>Returns the double that is nearest to a quotient; of two, the even one.</summary>
        private static double Divide(BigInteger numerator, BigInteger denominator)
        {
            // The quotient of the shifted numbers has 53 bits, or fewer for a subnormal number.
            int shift = Math.Min(1074, MantissaBits + 1 + Bits(denominator) - Bits(numerator));
            BigInteger mantissa = Rounded(numerator, denominator, shift);
            if (mantissa >> (MantissaBits + 1) != 0)
            {
                shift--;
                mantissa = Rounded(numerator, denominator, shift);
            }
            if (mantissa >> (MantissaBits + 1) != 0) // rounded up to the next power of two
            {
                shift--;
                mantissa >>= 1;
            }
            bool isSubnormal = mantissa >> MantissaBits == 0;
            long biased = isSubnormal ? 0 : 1075 - shift;
            if (biased >= 2047)
            {
                return double.PositiveInfinity;
            }
            long fraction = (long)(isSubnormal ? mantissa : mantissa - (BigInteger.One << MantissaBits));
            return BitConverter.Int64BitsToDouble((biased << MantissaBits) | fraction);
        }

        private static BigInteger Rounded(BigInteger numerator, BigInteger denominator, int shift)
        {
            BigInteger above = shift > 0 ? numerator << shift : numerator;
            BigInteger below = shift < 0 ? denominator << -shift : denominator;
            BigInteger rest;
            BigInteger quotient = BigInteger.DivRem(above, below, out rest);
            int half = (2 * rest).CompareTo(below);
            return half > 0 || half == 0 && !quotient.IsEven ? quotient + 1 : quotient;
        }

        private static int Bits(BigInteger number)
        {
            byte[] bytes = number.ToByteArray();
            int last = bytes.Length - 1;
            int bits = 8 * last;
            for (int top = bytes[last]; top > 0; top >>= 1)
            {
                bits++;
            }
            return bits;
        }
    }
}
