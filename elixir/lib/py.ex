defmodule Py do
  @moduledoc """
  Python inside the BEAM, with Elixir names.

  Every function is the one of the same name in the Erlang module `:py`; the pages in `docs/` tell
  what they do. Answers are `{:ok, value}` or `{:error, reason}`; `Py.Error.format/1` makes a
  sentence of a reason.

      iex> Py.call(:math, :sqrt, [16])
      {:ok, 4.0}

      iex> Py.eval("a + b", %{a: 1, b: 2})
      {:ok, 3}
  """

  @typedoc "A name: atom, binary or charlist, dotted or not."
  @type name :: atom | binary | charlist

  @typedoc "A context's process, a bound handle, or the name of a pool."
  @type context :: :py.context()

  @type result :: :py.result()

  # Calling

  defdelegate call(module, function, args), to: :py
  defdelegate call(module_or_context, function, args, kwargs), to: :py
  defdelegate call(module_or_context, function, args, kwargs, timeout_or_opts), to: :py
  defdelegate call(context, module, function, args, kwargs, timeout_or_opts), to: :py

  defdelegate eval(code), to: :py
  defdelegate eval(code_or_context, locals), to: :py
  defdelegate eval(code_or_context, locals, timeout_or_opts), to: :py
  defdelegate eval(context, code, locals, timeout_or_opts), to: :py

  defdelegate exec(code), to: :py
  defdelegate exec(context, code), to: :py

  defdelegate cast(module, function, args), to: :py
  defdelegate cast(module_or_context, function, args, kwargs), to: :py
  defdelegate cast(module_or_context, function, args, kwargs, timeout_or_opts), to: :py
  defdelegate cast(context, module, function, args, kwargs, timeout_or_opts), to: :py

  defdelegate spawn_call(module, function, args), to: :py
  defdelegate spawn_call(module_or_context, function, args, kwargs), to: :py
  defdelegate spawn_call(module_or_context, function, args, kwargs, timeout_or_opts), to: :py
  defdelegate spawn_call(context, module, function, args, kwargs, timeout_or_opts), to: :py

  defdelegate async_call(module, function, args), to: :py
  defdelegate async_call(module_or_context, function, args, kwargs), to: :py
  defdelegate async_call(module_or_context, function, args, kwargs, timeout_or_opts), to: :py
  defdelegate async_call(context, module, function, args, kwargs, timeout_or_opts), to: :py
  defdelegate async_gather(calls), to: :py
  defdelegate async_gather(calls, timeout_or_opts), to: :py
  defdelegate async_stream(module, function, args), to: :py
  defdelegate async_stream(module_or_context, function, args, kwargs), to: :py
  defdelegate async_stream(module_or_context, function, args, kwargs, timeout_or_opts), to: :py
  defdelegate async_stream(context, module, function, args, kwargs, timeout_or_opts), to: :py

  defdelegate await(ref), to: :py
  defdelegate await(ref, timeout), to: :py
  defdelegate async_await(ref), to: :py
  defdelegate async_await(ref, timeout), to: :py
  defdelegate cancel(ref), to: :py

  # Streams

  defdelegate stream(module, function, args), to: :py
  defdelegate stream(module_or_context, function, args, kwargs), to: :py
  defdelegate stream(module_or_context, function, args, kwargs, timeout_or_opts), to: :py
  defdelegate stream(context, module, function, args, kwargs, timeout_or_opts), to: :py
  defdelegate stream_eval(code), to: :py
  defdelegate stream_eval(code_or_context, locals), to: :py
  defdelegate stream_eval(code_or_context, locals, timeout_or_opts), to: :py
  defdelegate stream_eval(context, code, locals, timeout_or_opts), to: :py
  defdelegate stream_start(module, function, args), to: :py
  defdelegate stream_start(module_or_context, function, args, kwargs), to: :py
  defdelegate stream_start(module_or_context, function, args, kwargs, timeout_or_opts), to: :py
  defdelegate stream_start(context, module, function, args, kwargs, timeout_or_opts), to: :py
  defdelegate stream_ack(ref, count), to: :py
  defdelegate stream_cancel(ref), to: :py

  # Threads and names

  defdelegate parallel(calls), to: :py
  defdelegate parallel(calls, timeout_or_opts), to: :py

  defdelegate map(function, list), to: :py
  defdelegate map(function, list, opts), to: :py
  defdelegate map(module, function, list, opts), to: :py

  defdelegate bind(), to: :py
  defdelegate bind(new), to: :py
  defdelegate unbind(), to: :py
  defdelegate unbind(handle), to: :py
  defdelegate is_bound(), to: :py
  defdelegate with_context(fun), to: :py
  defdelegate ctx_call(context, module, function, args), to: :py
  defdelegate ctx_call(context, module, function, args, kwargs), to: :py
  defdelegate ctx_call(context, module, function, args, kwargs, timeout_or_opts), to: :py
  defdelegate ctx_eval(context, code), to: :py
  defdelegate ctx_eval(context, code, locals), to: :py
  defdelegate ctx_eval(context, code, locals, timeout_or_opts), to: :py
  defdelegate ctx_exec(context, code), to: :py
  defdelegate context(), to: :py
  defdelegate context(number), to: :py
  defdelegate register_pool(name, opts), to: :py
  defdelegate unregister_pool(name), to: :py
  defdelegate interrupt(context), to: :py

  # Callbacks, shared state

  defdelegate register_function(name, function), to: :py
  defdelegate register_function(name, module, function), to: :py
  defdelegate unregister_function(name), to: :py
  defdelegate state_fetch(key), to: :py
  defdelegate state_store(key, value), to: :py
  defdelegate state_remove(key), to: :py
  defdelegate state_keys(), to: :py
  defdelegate state_clear(), to: :py
  defdelegate state_incr(key), to: :py
  defdelegate state_incr(key, by), to: :py
  defdelegate state_decr(key), to: :py
  defdelegate state_decr(key, by), to: :py
  defdelegate shared_dict_new(), to: :py
  defdelegate shared_dict_new(opts), to: :py
  defdelegate shared_dict_close(dict), to: :py
  defdelegate shared_dict_get(dict, key), to: :py
  defdelegate shared_dict_put(dict, key, value), to: :py
  defdelegate shared_dict_put_new(dict, key, value), to: :py
  defdelegate shared_dict_swap(dict, key, old, new), to: :py
  defdelegate shared_dict_incr(dict, key), to: :py
  defdelegate shared_dict_incr(dict, key, by), to: :py
  defdelegate shared_dict_take(dict, key), to: :py
  defdelegate shared_dict_keys(dict), to: :py
  defdelegate shared_dict_to_list(dict), to: :py
  defdelegate shared_dict_size(dict), to: :py
  defdelegate shared_dict_clear(dict), to: :py

  # Objects and types

  defdelegate call_method(ref, name, args), to: :py
  defdelegate call_method(ref, name, args, kwargs), to: :py
  defdelegate getattr(ref, name), to: :py
  defdelegate to_term(ref), to: :py
  defdelegate is_ref(term), to: :py
  defdelegate register_converter(direction, what, function), to: :py

  # About the node's Python

  defdelegate version(), to: :py
  defdelegate stats(), to: :py
  defdelegate memory_stats(), to: :py
  defdelegate gc(), to: :py
  defdelegate reload(module), to: :py
  defdelegate execution_mode(), to: :py
  defdelegate last_error(), to: :py
  defdelegate doctor(), to: :py
  defdelegate activate_venv(path), to: :py
  defdelegate deactivate_venv(), to: :py
  defdelegate export_env(), to: :py
  defdelegate export_env(names), to: :py
  defdelegate venv_info(), to: :py
  defdelegate ensure_venv(path, requirements), to: :py
  defdelegate ensure_venv(path, requirements, options), to: :py
end
