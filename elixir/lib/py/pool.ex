defmodule Py.Pool do
  @moduledoc """
  Pools of threads or interpreters for a supervisor of yours. See `:py_pool`; `Py.register_pool/2` makes one that the
  application supervises.

      children = [
        {Py.Pool, name: :images, size: 2}
      ]

      Py.call(:images, :math, :sqrt, [16])
  """

  import Py.Face, only: [owned: 1]

  owned :py_pool
end
