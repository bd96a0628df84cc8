//! Log lines about messages whose requests belong to a trace. A line for each message would be too many.

/// Logs a step with the trace that it belongs to. Lines with a `parent_id` are also exported as spans, if traces are:
/// `began_us` is when the span began, and `span_id` is its ID, if others know it.
macro_rules! log_traced {
    ($trace:expr, $step:literal, $($fields:tt)+) => {
        tracing::info!(
            trace_id = %$trace.trace_id(),
            parent_id = %$trace.parent_id(),
            sampled = $trace.is_sampled(),
            $($fields)+,
            $step
        )
    };
}
