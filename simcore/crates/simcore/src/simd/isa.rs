//! Instruction sets: the same code compiled several times, with a choice at run time.
//!
//! This is the only module with unsafe code. Each unsafe block calls a function that was compiled for
//! instructions which older processors lack. The processor is checked immediately before.

#![allow(unsafe_code, reason = "the one audited module")]

use crate::ir::Plan;

use super::Runs;
use super::block::Block;
use super::code::Code;
use super::registers::Registers;

/// A set of vector instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isa {
    /// The instructions of the compilation target.
    Baseline,
    /// 256-bit vectors.
    Avx2,
    /// 512-bit vectors.
    Avx512,
}

impl Isa {
    /// Return the best set of this processor.
    #[must_use]
    pub fn best() -> Self {
        [Self::Avx512, Self::Avx2].into_iter().find(|isa| isa.is_available()).unwrap_or(Self::Baseline)
    }

    /// Return True if this processor supports it.
    #[must_use]
    pub fn is_available(self) -> bool {
        match self {
            Self::Baseline => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => is_x86_feature_detected!("avx2"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
            }
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx2 | Self::Avx512 => false,
        }
    }
}

/// An instruction set that the vectorised executor is compiled for.
///
/// Functions that are called once for each instruction of a rule, or from several places, are compiled once
/// for each set. The rest is inlined.
pub(super) trait Vectors {
    fn turn(block: &mut Block<'_>, acts_at_random: bool);
    fn run(registers: &mut Registers, plan: &Plan, code: &Code);
}

struct Baseline;

impl Vectors for Baseline {
    #[inline(never)]
    fn turn(block: &mut Block<'_>, acts_at_random: bool) {
        block.turn::<Self>(acts_at_random);
    }

    #[inline(never)]
    fn run(registers: &mut Registers, plan: &Plan, code: &Code) {
        registers.run::<Self>(plan, code);
    }
}

/// Play a block with an instruction set, or with the baseline if it is not supported.
pub(super) fn play(isa: Isa, block: &mut Block<'_>, result: &mut Runs) {
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the check above shows that the processor supports the instructions of the function.
        Isa::Avx512 if isa.is_available() => unsafe { avx512::play(block, result) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Isa::Avx2 if isa.is_available() => unsafe { avx2::play(block, result) },
        _ => block.play::<Baseline>(result),
    }
}

/// A module whose functions are compiled for CPU features.
#[cfg(target_arch = "x86_64")]
macro_rules! compiled_for {
    ($name:ident, $features:literal) => {
        mod $name {
            use super::{Block, Code, Plan, Registers, Runs, Vectors};

            struct Here;

            impl Vectors for Here {
                #[inline(always)]
                fn turn(block: &mut Block<'_>, acts_at_random: bool) {
                    // SAFETY: as below.
                    unsafe { turn(block, acts_at_random) }
                }

                #[inline(always)]
                fn run(registers: &mut Registers, plan: &Plan, code: &Code) {
                    // SAFETY: only `play` below uses this type, and it runs only on processors with the
                    // features.
                    unsafe { run(registers, plan, code) }
                }
            }

            #[inline(never)]
            #[target_feature(enable = $features)]
            fn turn(block: &mut Block<'_>, acts_at_random: bool) {
                block.turn::<Here>(acts_at_random);
            }

            #[inline(never)]
            #[target_feature(enable = $features)]
            fn run(registers: &mut Registers, plan: &Plan, code: &Code) {
                registers.run::<Here>(plan, code);
            }

            #[target_feature(enable = $features)]
            pub(super) fn play(block: &mut Block<'_>, result: &mut Runs) {
                block.play::<Here>(result);
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
compiled_for!(avx2, "avx2");
#[cfg(target_arch = "x86_64")]
compiled_for!(avx512, "avx2,avx512f,avx512bw,avx512dq,avx512vl");
