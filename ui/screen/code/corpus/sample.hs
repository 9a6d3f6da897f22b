-- Counts words.
module Main where

import qualified Data.Map as Map

{- A longer comment {- nested -}
   over lines. -}
data Count = Count { word :: String, times :: Int }
  deriving (Eq, Show)

counts :: String -> Map.Map String Int
counts text = foldr add Map.empty (words text)
  where
    add w m = Map.insertWith (+) w 1 m

longest' :: [String] -> Maybe String
longest' [] = Nothing
longest' ws = case filter (/= "it's") ws of
  (w : _) | length w > 0x10 -> Just w
          | otherwise -> Nothing
  _ -> if null ws then Nothing else Just (head ws)

main :: IO ()
main = do
  text <- getContents
  let found = counts text
  print (Map.size found, 'c', '\n', 1.5)
