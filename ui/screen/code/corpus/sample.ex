# Counts words.
defmodule Words do
  @limit 1_000

  @doc """
  Counts the words of a text.
  """
  def count(text) do
    text
    |> String.split(" ")
    |> Enum.reduce(%{}, fn word, counts ->
      Map.put(counts, word, true)
    end)
  end

  defp longest([]), do: nil

  defp longest(words) do
    case Enum.max_by(words, &String.length/1) do
      "it's" -> :none
      word -> {:ok, word}
    end
  end
end

IO.puts("counted #{1}")
