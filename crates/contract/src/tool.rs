//! [`Tool`], the typed trait a tool implements, and [`Handler`], the erased form that a dispatcher holds.

use crate::{Definition, ErrorCode, Policy, ToolFailure, ToolSpec};
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

/// Names the context that a family of tools gets. The contract knows no market, so the family's crate says what it is.
pub trait Family: 'static {
    /// What a handler may use for one call.
    type Ctx<'a>;
}

/// One tool: one file with its arguments, its output, its spec and its handler.
pub trait Tool: 'static {
    /// Family the tool belongs to.
    type Family: Family;
    /// Typed arguments; `deny_unknown_fields`, every field documented with unit, range, default and condition.
    type Args: DeserializeOwned + JsonSchema;
    /// Typed result; every field documented.
    type Output: Serialize + JsonSchema;
    /// Published data.
    const SPEC: ToolSpec;

    /// Answers one validated call. Pure over `ctx`; never panics.
    ///
    /// # Errors
    /// A [`ToolFailure`] whose code is in `SPEC.errors` or one of the common codes.
    fn call(ctx: &mut <Self::Family as Family>::Ctx<'_>, args: Self::Args) -> Result<Self::Output, ToolFailure>;

    /// Adds conditional requirements (per operation, per card policy) to the derived input schema. One place per tool.
    fn refine(_schema: &mut Value, _policy: &Policy) {}
}

type Invoke<F> = for<'r, 'c> fn(&'r mut <F as Family>::Ctx<'c>, Value) -> Result<Value, ToolFailure>;

/// A tool with its types erased. `invoke` is only to be called with arguments that passed the definition's validator.
pub struct Handler<F: Family> {
    /// Published data.
    pub spec: &'static ToolSpec,
    /// Builds the definition for a policy.
    pub define: fn(&Policy) -> Definition,
    invoke: Invoke<F>,
}

impl<F: Family> std::fmt::Debug for Handler<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handler").field("name", &self.spec.name).finish_non_exhaustive()
    }
}

impl<F: Family> Clone for Handler<F> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<F: Family> Copy for Handler<F> {}

impl<F: Family> Handler<F> {
    /// Erases a tool.
    pub fn of<T: Tool<Family = F>>() -> Self {
        Self { spec: &T::SPEC, define: Definition::of::<T>, invoke: invoke::<T> }
    }

    /// Runs the handler on validated arguments and returns the result as JSON, still unmasked.
    ///
    /// # Errors
    /// What the handler returned; [`ErrorCode::InvalidToolArguments`] when the types refuse what the schema let pass.
    pub fn invoke(&self, ctx: &mut F::Ctx<'_>, args: Value) -> Result<Value, ToolFailure> {
        (self.invoke)(ctx, args)
    }
}

fn invoke<T: Tool>(ctx: &mut <T::Family as Family>::Ctx<'_>, args: Value) -> Result<Value, ToolFailure> {
    // The schema is the gate; the types are a second one, and a mismatch between the two is still answered, not crashed on.
    let args: T::Args = serde_json::from_value(args).map_err(|fault| {
        ToolFailure::new(
            ErrorCode::InvalidToolArguments,
            format!("The arguments of {} cannot be read: {fault}.", T::SPEC.name),
            "Send the arguments in the shape of the valid example.",
        )
    })?;
    let output = T::call(ctx, args)?;
    serde_json::to_value(output).map_err(|fault| {
        ToolFailure::new(
            ErrorCode::Internal,
            format!("The result of {} cannot be written as JSON: {fault}.", T::SPEC.name),
            "This is a defect of the environment; go on without this tool.",
        )
    })
}
